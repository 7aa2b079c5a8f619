# SPDX-License-Identifier: Apache-2.0
"""Learn on some scenes how hard a view is, and certify another scene with the result."""

from dataclasses import replace

import torch

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # in place of your captures

NAMES = [f"{k:02d}.png" for k in range(60)]
HELD_OUT = NAMES[::3]


def capture(seed: int) -> sc.Capture:
    """A synthetic courtyard and a model of it that is worse on one side, so that views differ."""
    world = made_splats(1_000, seed=seed, sh_degree=1)
    cameras = made_cameras(len(NAMES), 60, 40, turn=330 - 9 * seed)
    photos = [sc.render(world, camera).rgb.clamp(0, 1) for camera in cameras]
    scene = sc.scene_from_tensors(
        dict(zip(NAMES, cameras, strict=True)),
        dict(zip(NAMES, photos, strict=True)),
        held_out=HELD_OUT,
        path=f"courtyard-{seed}",
    )
    random, angle = torch.Generator().manual_seed(seed), torch.tensor(2.4 * seed)
    east = world.means[:, 0] * angle.cos() + world.means[:, 1] * angle.sin()
    noise = torch.randn(world.sh.shape, generator=random) * torch.sigmoid(east)[:, None, None]
    splats = replace(world, sh=world.sh + 0.2 * noise)
    return sc.Capture.in_memory(scene, splats, unseen=HELD_OUT)


# Three source scenes, certified without a predictor. A certificate's views are what is learned
# from: 24 numbers that describe each view, and the factor it would have needed.
plain = sc.PaperScale(None)
sources = [sc.certify(capture(seed), scale=plain).views for seed in (1, 2, 3)]
predictor = sc.learn(sources, sc.LearnConfig(beta="1/10", views="held-out"))
print(
    f"learned     on {len(sources)} scenes: ridge {predictor.ridge:g}, "
    f"lambda_a {predictor.lambda_a}, lambda_b {predictor.lambda_b}"
)

# Its card shows how it does on scenes that it has not seen: each source is left out once.
for row in predictor.card["scenes"]:
    print(
        f"left out    {row['scene']}: rank correlation {row['spearman']:.2f}, "
        f"{row['saving']['full']:.0%} narrower than a constant scale"
    )

# It is a small JSON file, bound by its hash to every certificate that uses it.
predictor.save("predictor.json")
assert sc.load_predictor("predictor.json").sha256 == predictor.sha256

# A new scene, with and without it. The guarantee is the same; the boxes are not.
widths: dict[str, float] = {}
for name, scale in {"without": plain, "with": sc.PaperScale(predictor)}.items():
    target = capture(4)
    certificate = sc.certify(target, scale=scale)
    boxes = certificate.predict(target.scene.held_out.cameras)
    means = [float(one.half_width.mean()) for one in boxes]
    widths[name] = sum(means) / len(means)
    print(
        f"{name:<12}mean half-width {widths[name]:.4f}, "
        f"{min(means):.4f} to {max(means):.4f} across views"
    )
    print(f"            {certificate.guarantee}")
print(f"saved       {1 - widths['with'] / widths['without']:.0%} of the width")

# A predictor that learned from the labels that are to calibrate is refused.
try:
    sc.certify(capture(2), scale=sc.PaperScale(predictor))
except sc.InputError as error:
    print("refused    ", str(error).splitlines()[0])
