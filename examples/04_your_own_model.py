# SPDX-License-Identifier: Apache-2.0
"""Open and certify the run folders of Inria's and gsplat's trainers."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # in place of your capture

kept = TemporaryDirectory()
data, inria, gsplat = (Path(kept.name) / name for name in ("data", "output", "results"))

# You have these already: a capture with poses, and what a trainer wrote. Here both are
# synthetic: 80 photographs of a courtyard, and a model of it that is not quite right.
world, cameras = made_splats(2_000, sh_degree=1), made_cameras(80, 60, 40)
(data / "images").mkdir(parents=True)
frames: list[dict[str, object]] = []
for index, camera in enumerate(cameras):
    pixels = (255 * sc.render(world, camera).rgb.clamp(0, 1)).round().byte().numpy()
    Image.fromarray(pixels).save(data / f"images/{index:02d}.png")
    to_world = np.linalg.inv(camera.world_to_camera) * np.array([1.0, -1.0, -1.0, 1.0])  # OpenGL
    frames.append({"file_path": f"images/{index:02d}.png", "transform_matrix": to_world.tolist()})
lens = cameras[0]
intrinsics = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy}
size = {"w": lens.width, "h": lens.height}
(data / "transforms.json").write_text(json.dumps({**intrinsics, **size, "frames": frames}))
random = torch.Generator().manual_seed(0)
model = replace(world, sh=world.sh + 0.1 * torch.randn(world.sh.shape, generator=random))

# Inria's trainer writes a PLY per iteration, and its options to cfg_args.
(inria / "point_cloud/iteration_30000").mkdir(parents=True)
sc.save_ply(model, inria / "point_cloud/iteration_30000/point_cloud.ply")
options = "Namespace(sh_degree=1, white_background=False, eval=True)"
(inria / "cfg_args").write_text(options)

# gsplat's trainer writes tensors, and its options to cfg.yml.
tensors = {"means": model.means, "quats": model.quats, "scales": model.log_scales}
tensors |= {"opacities": model.logit_opacities, "sh0": model.sh[:, :1], "shN": model.sh[:, 1:]}
(gsplat / "ckpts").mkdir(parents=True)
torch.save({"step": 29_999, "splats": tensors}, gsplat / "ckpts/ckpt_29999_rank0.pt")
(gsplat / "cfg.yml").write_text("test_every: 8\nnormalize_world_space: false\nantialiased: false\n")

# One call opens photographs and model: the split that the run recorded, the frame of the model,
# and the background it was trained on.
thresholds: list[float] = []
for run in (inria, gsplat):
    capture = sc.open_capture(data, run)
    print(f"{run.name:<12}{len(capture.splats):,} Gaussians, {capture.split}")
    held_out, photos = len(capture.scene.held_out), len(capture.scene.cameras)
    print(f"            {held_out} of {photos} photos held out, according to the model")
    assert capture.unseen_by == "model"
    certificate = sc.certify(capture)
    thresholds.append(certificate.threshold)
    width = certificate.predict(cameras[3]).half_width.mean()
    print(f"            threshold {certificate.threshold:.5f}, mean half-width {width:.4f}")
    print(f"            {certificate.guarantee}")
assert np.isclose(thresholds[0], thresholds[1], rtol=1e-4)

# A model that was trained on every photo has nothing to calibrate on, and is refused.
(inria / "cfg_args").write_text(options.replace("eval=True", "eval=False"))
try:
    sc.open_capture(data, inria)
except sc.InputError as error:
    print("refused    ", *str(error).split())
kept.cleanup()
