# SPDX-License-Identifier: Apache-2.0
"""Train with gsplat's parameters, certify and predict, all in memory and without a file."""

import torch

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # in place of your loader

# Pictures and cameras as your own loader has them. Cameras also come from COLMAP, OpenGL or
# nerfstudio: sc.Camera.from_colmap, .from_opengl, .from_nerfstudio.
world, cameras = made_splats(600, sh_degree=1), made_cameras(36, 60, 40)
pictures = [(255 * sc.render(world, camera).rgb.clamp(0, 1)).byte().numpy() for camera in cameras]
held_out = range(0, 36, 3)
scene = sc.Scene.from_arrays(pictures, cameras, held_out=list(held_out))

# Parameters in gsplat's layout, of a model that is not quite right. Scales are logarithms and
# opacities logits here, as its trainer steps on them: activated=False says so.
random = torch.Generator().manual_seed(0)
params = {
    name: torch.nn.Parameter(tensor + 0.02 * torch.randn(tensor.shape, generator=random))
    for name, tensor in world.to_gsplat(activated=False).items()
}

# Three steps on training views. Held-out views are never looked at.
for view in scene.training[:3]:
    splats = sc.Splats.from_gsplat(params, activated=False)
    loss = (sc.render(splats, view.camera).rgb - view.image()).abs().mean()
    slopes = torch.autograd.grad(loss, list(params.values()))
    for parameter, slope in zip(params.values(), slopes, strict=True):
        parameter.data -= 0.02 * slope
    print(f"step on {view.name}: loss {loss.item():.4f}")

# Who trains in memory must say which views the model has not seen: nobody else knows.
trained = sc.Splats.from_gsplat({n: p.detach() for n, p in params.items()}, activated=False)
certificate = sc.certify(scene, trained, unseen=scene.held_out.names)
boxes = certificate.predict(cameras[1])
print(certificate.guarantee)
print(f"mean half-width {boxes.half_width.mean():.4f} of a colour range of 1")
