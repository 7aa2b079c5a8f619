# SPDX-License-Identifier: Apache-2.0
"""Learn on some scenes how hard a view is, and certify another one with what was learned."""

from dataclasses import replace

import torch

import splatcert as sc
from splatcert.config import LearnConfig
from splatcert.difficulty.learn import learn_predictor
from splatcert.difficulty.predictor import load_predictor
from splatcert.scene.scene import scene_from_tensors
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


def capture(seed):
    """A made courtyard and a model of it that is worse on one side, so that views differ."""
    world = made_splats(1_000, seed=seed, sh_degree=1)
    cameras = made_cameras(60, 60, 40, turn=330 - 9 * seed)
    names = [f"{k:02d}.png" for k in range(len(cameras))]
    photos = [sc.render(world, camera).rgb.clamp(0, 1) for camera in cameras]
    scene = scene_from_tensors(
        dict(zip(names, cameras, strict=True)),
        dict(zip(names, photos, strict=True)),
        held_out=names[::3],
        path=f"courtyard-{seed}",
    )
    random, angle = torch.Generator().manual_seed(seed), torch.tensor(2.4 * seed)
    east = world.means[:, 0] * angle.cos() + world.means[:, 1] * angle.sin()
    noise = torch.randn(world.sh.shape, generator=random) * torch.sigmoid(east)[:, None, None]
    return scene, replace(world, sh=world.sh + 0.2 * noise)


# Three source scenes, certified without any predictor. What is learned from is in a
# certificate's views: 24 numbers that describe each, and the factor it would have needed.
sources = [sc.certify(*capture(seed), predictor=None).views for seed in (1, 2, 3)]
predictor = learn_predictor(sources, LearnConfig(beta="1/10", views="held-out"))
print(
    f"learned     from {len(sources)} scenes: ridge {predictor.ridge:g}, "
    f"lambda_a {predictor.lambda_a}, lambda_b {predictor.lambda_b}"
)

# Its card tells how it does on a scene that it has not seen: each left out once.
for row in predictor.card["scenes"]:
    print(
        f"left out    {row['scene']}: views ranked with correlation {row['spearman']:.2f}, "
        f"{row['saving']['full']:.0%} of a constant scale's width saved"
    )

# It is a small JSON file, bound by its hash to every certificate that uses it.
predictor.save("predictor.json")
assert load_predictor("predictor.json").sha256 == predictor.sha256

# Another scene, with and without it. The promise is the same; the boxes are not.
widths = {}
for name, chosen in {"without": None, "with": predictor}.items():
    scene, splats = capture(4)
    certificate = sc.certify(scene, splats, predictor=chosen)
    boxes = [certificate.predict(view.camera) for view in scene.held_out]
    means = [float(one.half_width.mean()) for one in boxes]
    widths[name] = sum(means) / len(means)
    print(
        f"{name:<12}mean half-width {widths[name]:.4f}, views from {min(means):.4f} to "
        f"{max(means):.4f}"
    )
print(f"saved       {1 - widths['with'] / widths['without']:.0%} of the width")
print(f"guarantee   {certificate.guarantee}")

# No predictor may have learned from labels that calibrate: they would not be new to it.
try:
    sc.certify(*capture(2), predictor=predictor)
except sc.InputError as error:
    print("refused    ", str(error).splitlines()[0])
