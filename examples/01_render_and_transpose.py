# SPDX-License-Identifier: Apache-2.0
"""Render a scene, carry pixels back to its Gaussians, and list what contributes to a pixel."""

import torch

import splatcert as sc
from splatcert_bench.synthetic.scenes import made_cameras, made_splats  # in place of your model

splats, camera = made_splats(20_000), made_cameras(1, 320, 210)[0]

# One picture: colour, opacity and depth.
picture = sc.render(splats, camera, background=(1.0, 1.0, 1.0))
print(f"rendered    {tuple(picture.rgb.shape)}, mean opacity {picture.alpha.mean():.3f}")

# The same view as a linear operator A, prepared once for many passes. One pass composites any
# number of quantities per Gaussian: here colour, depth and opacity.
view = sc.open_view(splats, camera)
depth, one = view.depths()[:, None], torch.ones(len(splats), 1)
image = view.composite(torch.cat([view.colours(), depth, one], dim=1))
assert torch.allclose(image[..., 4], picture.alpha)

# Its exact transpose: how much each Gaussian contributes to the picture, in pixels.
exposure = view.scatter(torch.ones(camera.height, camera.width, 1))[:, 0]
left, right = picture.alpha.double().sum(), exposure.double().sum()
print(f"transpose   {left:.2f} pixels of opacity in the picture, {right:.2f} on the Gaussians")
assert torch.isclose(left, right, rtol=1e-5)
print(f"seen        {(exposure > 0).sum():,} of {len(splats):,} Gaussians")

# The weights behind one pixel, front to back: (row, column).
found = view.contributors(torch.tensor([[105, 160]]))
first = found.gaussians[found.weights.argmax()]
print(f"one pixel   {len(found.weights)} Gaussians; number {first} has the largest weight")

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
print(f"fitted      one value per Gaussian to an image, mean error {error:.4f}")

# Gradients with respect to every parameter, for training or sensitivity analysis.
splats.means.requires_grad_()
brightness = sc.render(splats, camera).rgb[105, 160].sum()
(gradient,) = torch.autograd.grad(brightness, splats.means)
moved = (gradient != 0).any(1).sum()
print(f"gradients   {moved} Gaussians would change that pixel if they moved")
