# SPDX-License-Identifier: Apache-2.0
"""From photographs and splats to certified boxes: certify, predict, store, verify."""

from dataclasses import replace

import numpy as np
import torch

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # in place of your capture

# A synthetic capture: 60 photographs of a courtyard, every third held out. With files of your
# own, sc.open_capture("data/truck", "runs/truck") replaces everything up to `certify`.
world, cameras = made_splats(3_000, sh_degree=1), made_cameras(60, 90, 60)
names = [f"{k:02d}.png" for k in range(len(cameras))]
photos = [torch.round(255 * sc.render(world, camera).rgb.clamp(0, 1)) / 255 for camera in cameras]
scene = sc.scene_from_tensors(
    dict(zip(names, cameras, strict=True)),
    dict(zip(names, photos, strict=True)),
    held_out=names[::3],
)
print(f"capture     {len(scene.training)} training photos, {len(scene.held_out)} held out")

# A model that is not quite right.
random = torch.Generator().manual_seed(0)
splats = replace(
    world,
    means=world.means + 0.01 * torch.randn(world.means.shape, generator=random),
    sh=world.sh + 0.1 * torch.randn(world.sh.shape, generator=random),
)

# The certificate. `unseen` states which photos the model was not trained on. They are read
# once, after every scale has been fixed.
levels = sc.CertifyConfig(alpha="1/10", beta="1/10")
certificate = sc.certify(scene, splats, unseen=names[::3], config=levels)
guarantee, labels = certificate.record.guarantee, certificate.record.labels
print(
    f"calibrated  threshold {guarantee.threshold:.4f}, "
    f"rank {guarantee.rank} of {guarantee.views} scores"
)
print(f"guarantee   {certificate.guarantee}")
print(f"labels      opened once, after the scales were frozen as {labels.frozen[:12]}")

# Boxes for cameras that took no photograph: one among the others, and one far behind them.
among = made_cameras(7, 90, 60)[3]
pose = np.array(among.world_to_camera, dtype=np.float64)
pose[2, 3] += 5
behind = replace(among, world_to_camera=pose)
for boxes in certificate.predict([among, behind]):
    assert boxes.flag is not None
    print(f"new view    mean half-width {boxes.half_width.mean():.4f}, {boxes.flag.words()}")

# Other levels, from the stored scores. Only the levels asked for above are certified.
wider = certificate.at("1/10", "1/20").predict(among)
print(f"beta 1/20   mean half-width {wider.half_width.mean():.4f}")

# Load it from disk, with the training photos that its boxes depend on. A different model, a
# different photo, a different renderer or an edit is refused.
certificate.save("courtyard.cert")
loaded = sc.load_certificate("courtyard.cert", splats, scene=scene)
boxes, again = certificate.predict(among), loaded.predict(among)
assert torch.equal(boxes.lower, again.lower) and torch.equal(boxes.upper, again.upper)

# Anybody can check it: by itself, or from scratch with sc.verify(path, capture).
found = sc.verify("courtyard.cert")
assert found.passed
print(f"verified    {len(found.checks)} checks, for example: {found.checks[5].detail}")
