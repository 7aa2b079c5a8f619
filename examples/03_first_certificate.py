# SPDX-License-Identifier: Apache-2.0
"""From photographs and splats to certified boxes: certify, predict, store, verify."""

from dataclasses import replace

import torch

import splatcert as sc
from splatcert.scene.scene import scene_from_tensors
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

# A made capture: 60 photographs of a courtyard, every third held out. From a folder of your
# own, sc.load_scene("data/truck", holdout=8) makes the same.
world, cameras = made_splats(3_000, sh_degree=1), made_cameras(60, 90, 60)
names = [f"{k:02d}.png" for k in range(len(cameras))]
photos = [torch.round(255 * sc.render(world, camera).rgb.clamp(0, 1)) / 255 for camera in cameras]
scene = scene_from_tensors(
    dict(zip(names, cameras, strict=True)),
    dict(zip(names, photos, strict=True)),
    held_out=names[::3],
)
print(f"capture     {len(scene.training)} training photos, {len(scene.held_out)} held out")

# A model that is not quite right. Of your own, sc.load_splats("point_cloud.ply") or sc.train.
random = torch.Generator().manual_seed(0)
splats = replace(
    world,
    means=world.means + 0.01 * torch.randn(world.means.shape, generator=random),
    sh=world.sh + 0.1 * torch.randn(world.sh.shape, generator=random),
)

# The certificate. Held-out photos are read once, after every scale has been fixed.
certificate = sc.certify(scene, splats, sc.CertifyConfig(alpha="1/10", beta="1/10"))
promise = certificate.record.guarantee
print(
    f"calibrated  threshold {promise.threshold:.4f}, rank {promise.rank} of {promise.views} scores"
)
print(f"guarantee   {certificate.guarantee}")
print(
    f"labels      read once, after the scales were fixed as {certificate.record.labels.frozen[:12]}"
)

# Boxes for cameras that took no photograph: one among the others, and one far behind them.
among = made_cameras(7, 90, 60)[3]
pose = among.world_to_camera.copy()
pose[2, 3] += 5
for camera in (among, replace(among, world_to_camera=pose)):
    boxes = certificate.predict(camera)
    print(f"new view    mean half-width {boxes.half_width.mean():.4f}, {boxes.support.words()}")

# The same from the disk, next year. Another model, another renderer or an edit is refused.
certificate.save("courtyard.cert")
again = sc.load_certificate("courtyard.cert", splats).predict(camera)
assert torch.equal(boxes.lower, again.lower) and torch.equal(boxes.upper, again.upper)

# Somebody else checks it: by itself, or with photographs and splats from scratch.
found = sc.verify("courtyard.cert")
assert found.passed
print(f"verified    by {len(found.checks)} checks, for example: {found.checks[5].detail}")
