# SPDX-License-Identifier: Apache-2.0
"""Render a made scene, carry pixels back to its Gaussians, and ask what makes a pixel."""

import torch

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

splats, camera = made_splats(20_000), made_cameras(1, 320, 210)[0]

# One picture: colour, opacity and depth.
picture = sc.render(splats, camera, background=(1.0, 1.0, 1.0))
print(f"rendered    {tuple(picture.rgb.shape)}, mean opacity {picture.alpha.mean():.3f}")

# The same view as a linear operator A, prepared once for many passes. Any number of
# quantities per Gaussian is composited in one pass: here colour, depth and opacity.
view = sc.open_view(splats, camera)
depth, one = view.depths()[:, None], torch.ones(len(splats), 1)
image = view.composite(torch.cat([view.colours(), depth, one], dim=1))
assert torch.allclose(image[..., 4], picture.alpha)

# Its exact transpose: how much of the picture each Gaussian makes, in pixels.
exposure = view.scatter(torch.ones(camera.height, camera.width, 1))[:, 0]
left, right = picture.alpha.double().sum(), exposure.double().sum()
print(f"transpose   {left:.2f} pixels of opacity in the picture, {right:.2f} on the Gaussians")
assert torch.isclose(left, right, rtol=1e-5)
print(f"seen        {(exposure > 0).sum():,} of {len(splats):,} Gaussians")

# The weights behind one pixel, front to back: (row, column).
found = view.contributors(torch.tensor([[105, 160]]))
first = found.gaussians[found.weights.argmax()]
print(f"one pixel   {len(found.weights)} Gaussians, of which number {first} weighs most")

# A least-squares field on the Gaussians that reproduces an image: the normal equations
# (AᵀA + ridge) x = Aᵀ y, by ten steps of conjugate gradients.
target = picture.depth[..., None] / picture.depth.max()
x, residual = torch.zeros_like(one), view.scatter(target)
step, size, ridge = residual, (residual**2).sum(), 1e-2
for _ in range(10):
    forward = view.normal(step) + ridge * step
    rate = size / (step * forward).sum()
    x, residual = x + rate * step, residual - rate * forward
    size, before = (residual**2).sum(), size
    step = residual + size / before * step
error = (view.composite(x) - target).abs().mean()
print(f"fitted      an image by one value per Gaussian, mean error {error:.4f}")

# Gradients to every parameter, for training or for asking what moves a pixel.
splats.means.requires_grad_()
sc.render(splats, camera).rgb[105, 160].sum().backward()
assert splats.means.grad is not None
moved = splats.means.grad.norm(dim=1).gt(0).sum()
print(f"gradients   {moved} Gaussians would change that pixel if they moved")
