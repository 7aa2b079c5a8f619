# SPDX-License-Identifier: Apache-2.0
"""The fused loss against scikit-image, plain torch and finite differences."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from torch.nn.functional import conv2d

from splatcert import _native
from splatcert.raster import native
from splatcert.scene.roles import EvaluationView
from splatcert.training.losses import _bytes, _floats, measure, psnr, ssim
from splatcert_bench.synthetic.scenes import made_cameras, made_splats


class _Photometric(torch.autograd.Function):
    """The loss and its gradient come out of one native call; backward only scales."""

    @staticmethod
    def forward(ctx, image, target, ssim_weight, mask):  # type: ignore[override]
        """Evaluate loss and gradient together."""
        x = _floats(image)
        grad = torch.empty_like(x)
        l1, ssim = _native.loss(
            x, _floats(target), 1 - ssim_weight, ssim_weight, _bytes(mask), False, grad
        )
        ctx.save_for_backward(grad)
        return torch.tensor((1 - ssim_weight) * l1 + ssim_weight * (1 - ssim))

    @staticmethod
    def backward(ctx, grad_loss):  # type: ignore[override]
        """Scale the stored gradient."""
        return ctx.saved_tensors[0] * grad_loss, None, None, None


def photometric_loss(image, target, *, ssim_weight=0.2, mask=None):
    """(1 - w) L1 + w (1 - SSIM) of images [H, W, C], averaged over pixels where `mask` is true."""
    return _Photometric.apply(image, target, ssim_weight, mask)  # type: ignore[return-value]


def smooth_pair(height: int, width: int, channels: int = 3, seed: int = 0):
    """A picture and a disturbed copy, both in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, channels, height // 6 + 2, width // 6 + 2, generator=generator)
    fine = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    a = fine[0].permute(1, 2, 0).clamp(0, 1).contiguous()
    b = (a + 0.15 * torch.randn(a.shape, generator=generator)).clamp(0, 1)
    return a, b


def plain_ssim_map(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """SSIM with zero padding, spelt out in the dtype of its input, [H, W, C]."""
    axis = torch.arange(11, dtype=x.dtype) - 5
    line = torch.exp(-(axis**2) / 4.5)
    line = line / line.sum()
    kernel = (line[:, None] * line[None, :])[None, None]

    def blur(image: torch.Tensor) -> torch.Tensor:
        planes = image.permute(2, 0, 1)[:, None]
        return conv2d(planes, kernel, padding=5)[:, 0].permute(1, 2, 0)

    mx, my = blur(x), blur(y)
    vx, vy, cov = blur(x * x) - mx**2, blur(y * y) - my**2, blur(x * y) - mx * my
    c1, c2 = 0.01**2, 0.03**2
    return ((2 * mx * my + c1) * (2 * cov + c2)) / ((mx**2 + my**2 + c1) * (vx + vy + c2))


def plain_loss(x, y, weight=0.2, mask=None):
    counts = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    l1 = (x - y).abs()[counts].mean()
    return (1 - weight) * l1 + weight * (1 - plain_ssim_map(x, y)[counts].mean())


@pytest.mark.parametrize("size", [(40, 56), (11, 11), (64, 33), (37, 121)])
def test_ssim_equals_scikit_image(size):
    a, b = smooth_pair(*size)
    theirs = structural_similarity(
        a.numpy(), b.numpy(), channel_axis=2, data_range=1.0, gaussian_weights=True,
        sigma=1.5, use_sample_covariance=False, win_size=11,
    )  # fmt: skip
    assert ssim(a, b) == pytest.approx(theirs, abs=1e-5)


def test_psnr_equals_scikit_image():
    a, b = smooth_pair(30, 40)
    assert psnr(a, b) == pytest.approx(peak_signal_noise_ratio(a.numpy(), b.numpy(), data_range=1))
    assert psnr(a, a) == np.inf


@pytest.mark.parametrize("isa", native.available_isas())
@pytest.mark.parametrize("size", [(33, 47, 3), (5, 7, 3), (1, 1, 3), (20, 64, 1), (26, 31, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_loss_and_gradient_equal_plain_torch_in_float64(isa, size, masked, chosen_isa):
    chosen_isa(isa)
    a, b = smooth_pair(*size)
    mask = None
    if masked:
        mask = torch.rand(size[:2], generator=torch.Generator().manual_seed(3)) > 0.3
        mask[0, 0] = True
    x = a.clone().requires_grad_()
    ours = photometric_loss(x, b, mask=mask)
    (3 * ours).backward()
    y = a.double().requires_grad_()
    theirs = plain_loss(y, b.double(), mask=mask)
    (3 * theirs).backward()
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)
    assert x.grad is not None and y.grad is not None
    assert (x.grad - y.grad).norm() <= 1e-4 * y.grad.norm()


def test_gradient_matches_finite_differences():
    a, b = smooth_pair(18, 22, seed=5)
    x = a.clone().requires_grad_()
    photometric_loss(x, b).backward()
    assert x.grad is not None
    direction = torch.randn(a.shape, generator=torch.Generator().manual_seed(1)).double()
    step = 1e-6
    up, down = (plain_loss(a.double() + s * step * direction, b.double()) for s in (1, -1))
    slope = float((up - down) / (2 * step))
    assert float((x.grad.double() * direction).sum()) == pytest.approx(slope, rel=1e-3)


def test_equal_images_have_zero_loss_and_gradient():
    a, _ = smooth_pair(32, 32)
    x = a.clone().requires_grad_()
    loss = photometric_loss(x, a)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert x.grad is not None and x.grad.abs().max() < 1e-6


def test_an_empty_mask_gives_no_gradient():
    a, b = smooth_pair(16, 16)
    x = a.clone().requires_grad_()
    photometric_loss(x, b, mask=torch.zeros(16, 16, dtype=torch.bool)).backward()
    assert x.grad is not None and not x.grad.any()


def test_loss_has_the_same_bits_for_any_number_of_threads(threads):
    a, b = smooth_pair(75, 99)
    results = []
    for count in (1, 2, 8):
        threads(count)
        x = a.clone().requires_grad_()
        loss = photometric_loss(x, b)
        loss.backward()
        results.append((loss.detach().clone(), x.grad))
    assert all(torch.equal(loss, results[0][0]) for loss, _ in results)
    assert all(torch.equal(grad, results[0][1]) for _, grad in results)


def test_metrics_have_the_same_bits_for_any_number_of_torch_threads():
    splats, camera = made_splats(300), made_cameras(1, 331, 277)[0]
    photo, _ = smooth_pair(camera.height, camera.width)
    source = SimpleNamespace(has_mask=False, image=lambda: photo)
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found += measure(splats, [EvaluationView("a", camera, source)])  # type: ignore[arg-type]
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("size", [(10, 40), (20, 20)])
def test_ssim_of_no_pixel_is_refused(size):
    mask = torch.zeros(size, dtype=torch.bool) if size == (20, 20) else None
    with pytest.raises(ValueError, match="no pixel of a"):
        ssim(torch.zeros(*size, 3), torch.ones(*size, 3), mask=mask)
