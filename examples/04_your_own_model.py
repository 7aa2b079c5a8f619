# SPDX-License-Identifier: Apache-2.0
"""A model of Inria's or of gsplat's trainer, as its folder lies on your disk, certified."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

import splatcert as sc
from splatcert.scene.readers.camera_files import write_cameras
from splatcert.splats.files import describe_model, save_ply
from splatcert.splats.transform import transform_splats
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

kept = TemporaryDirectory()
data, inria, gsplat = (Path(kept.name) / name for name in ("data", "output", "results"))

# Yours is there already: a capture with COLMAP poses, and what a trainer has left. Here both
# are made: 80 photographs of a courtyard, and a model of it that is not quite right.
world, cameras = made_splats(2_000, sh_degree=1), made_cameras(80, 60, 40)
names = [f"{k:02d}.png" for k in range(len(cameras))]
(data / "images").mkdir(parents=True)
write_cameras(data, dict(zip(names, cameras, strict=True)))
for name, camera in zip(names, cameras, strict=True):
    pixels = (255 * sc.render(world, camera).rgb.clamp(0, 1)).round().byte().numpy()
    Image.fromarray(pixels).save(data / "images" / name)
random = torch.Generator().manual_seed(0)
model = replace(world, sh=world.sh + 0.1 * torch.randn(world.sh.shape, generator=random))

# Inria's trainer leaves a PLY by iteration, and its options in cfg_args.
(inria / "point_cloud/iteration_30000").mkdir(parents=True)
save_ply(model, inria / "point_cloud/iteration_30000/point_cloud.ply")
(inria / "cfg_args").write_text("Namespace(sh_degree=1, white_background=False, eval=True)")

# gsplat's leaves tensors, in a world that it has turned, moved and scaled before.
to_gsplat = np.array([[0, -0.5, 0, 0.3], [0, 0, -0.5, 0.1], [0.5, 0, 0, -0.2], [0, 0, 0, 1]])
moved = transform_splats(model, to_gsplat)
tensors = {"means": moved.means, "quats": moved.quats, "scales": moved.log_scales}
tensors |= {"opacities": moved.logit_opacities, "sh0": moved.sh[:, :1], "shN": moved.sh[:, 1:]}
(gsplat / "ckpts").mkdir(parents=True)
torch.save({"step": 29_999, "splats": tensors}, gsplat / "ckpts/ckpt_29999_rank0.pt")
(gsplat / "cfg.yml").write_text("test_every: 8\nnormalize_world_space: true\nantialiased: false\n")

# What is this? Which photographs has it not seen? Those, and no others, may calibrate.
for folder in (inria, gsplat):
    info = describe_model(folder)
    print(f"{info.format:<12}{info.count:,} Gaussians, has not seen {info.held_out}")
scene = sc.load_scene(data, holdout=8)
print(f"capture     {len(scene.training)} training photos, {len(scene.held_out)} held out")

# Inria's model lies in the capture's frame. gsplat's must be brought back to it: here we know
# how, otherwise `splatcert certify data results -o CERT` finds it out by the photographs.
splats = {"inria": sc.load_splats(inria), "gsplat": sc.load_splats(gsplat, frame=to_gsplat)}
thresholds = {}
for trainer, loaded in splats.items():
    fresh = sc.load_scene(data, holdout=8)  # labels calibrate once
    certificate = sc.certify(fresh, loaded, sc.CertifyConfig(alpha="1/10", beta="1/10"))
    thresholds[trainer] = certificate.threshold
    width = certificate.predict(cameras[3]).half_width.mean()
    print(f"{trainer:<12}threshold {certificate.threshold:.5f}, boxes of {width:.4f} on average")
print(f"guarantee   {certificate.guarantee}")
assert np.isclose(thresholds["inria"], thresholds["gsplat"], rtol=1e-4)

# A model in the wrong frame shows nothing of what was photographed, and is refused.
try:
    sc.certify(sc.load_scene(data, holdout=8), sc.load_splats(gsplat, frame="model"))
except sc.InputError as error:
    print("refused    ", *str(error).split())
kept.cleanup()
