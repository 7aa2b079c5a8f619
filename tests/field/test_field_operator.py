# SPDX-License-Identifier: Apache-2.0
"""The field's operator: native kernels against plain torch, view by view."""

import pytest
import torch
from tiny_capture import tiny_capture

from splatcert import _native
from splatcert.field.operator import NormalOperator, PreparedViews
from splatcert.raster import native
from splatcert.raster.native import NativeView
from splatcert.raster.normal_sums import NormalSums
from splatcert.raster.reference import ReferenceView
from splatcert.splats.harmonics import basis_towards, directions
from splatcert_bench.synthetic.scenes import made_cameras, made_splats

WIDTHS = [1, 4, 9, 16]


def scene(count=600, size=(75, 53)):
    """Splats, a camera whose last tiles are cut, and a generator."""
    splats = made_splats(count, sh_degree=0)
    return splats, made_cameras(1, *size)[0], torch.Generator().manual_seed(0)


def relative(ours, truth) -> float:
    return float((ours.double() - truth).norm() / truth.norm())


def test_directions_run_from_gaussian_to_camera():
    splats, camera, _ = scene(5)
    d = directions(splats.means.double(), camera)
    centre = torch.from_numpy(camera.centre)
    distance = (centre - splats.means).norm(dim=1, keepdim=True)
    assert torch.allclose(splats.means + distance * d, centre.expand(5, 3))


@pytest.mark.parametrize("bases", WIDTHS)
def test_values_are_the_harmonics_towards_the_camera(bases):
    splats, camera, generator = scene()
    view = NativeView(splats, camera)
    coefficients = torch.randn(len(splats), bases, generator=generator)
    drawn = torch.zeros(len(splats), dtype=torch.bool)
    drawn[torch.from_numpy(view._prepared.drawn())] = True
    truth = (coefficients * basis_towards(splats.means.double(), camera, bases)).sum(1)
    values = view.field_values(coefficients)
    assert relative(values[drawn], truth[drawn]) < 1e-6
    assert not values[~drawn].any()
    image = view.composite(view.field_values(coefficients)[:, None])[..., 0]
    assert torch.equal(image, view.composite(values[:, None])[..., 0])


@pytest.mark.parametrize("isa", [name for name in native.available_isas() if name != "scalar"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bases", WIDTHS)
def test_normal_is_the_transpose_after_the_operator(isa, masked, bases, chosen_isa):
    chosen_isa(isa)
    splats, camera, generator = scene()
    view = NativeView(splats, camera)
    mask = None
    if masked:
        mask = torch.rand(camera.height, camera.width, generator=generator) > 0.4
    coefficients = torch.randn(len(splats), bases, generator=generator)
    phi = basis_towards(splats.means.double(), camera, bases)
    image = view.composite((coefficients * phi).sum(1, keepdim=True))
    truth = view.scatter(image if mask is None else image * mask[..., None]).double() * phi
    result = torch.ones(len(splats), bases, dtype=torch.float64)
    view.field_normal(coefficients, mask, result)
    assert relative(result - 1, truth) < 1e-5


@pytest.mark.parametrize("isa", [name for name in native.available_isas() if name != "scalar"])
@pytest.mark.parametrize("masked", [False, True])
def test_native_and_plain_surveys_agree(isa, masked, chosen_isa):
    chosen_isa(isa)
    splats, camera, generator = scene(200, (43, 29))
    photo = torch.rand(camera.height, camera.width, 3, generator=generator)
    mask = torch.rand(photo.shape[:2], generator=generator) > 0.4 if masked else None
    ours, truth = NormalSums.zero(len(splats), 9, 2), NormalSums.zero(len(splats), 9, 2)
    exact = splats.to(torch.float64)
    for fold in (0, 1, 1):
        backdrop = (0.2, 0.5, 0.9)
        NativeView(splats, camera).survey(photo, mask, backdrop, ours.of_fold(fold))
        ReferenceView(exact, camera).survey(photo, mask, backdrop, truth.of_fold(fold))
    for name in ("support", "moments", "blocks", "squares", "energy"):
        assert relative(getattr(ours, name), getattr(truth, name).double()) < 1e-5, name
    assert torch.allclose(2 * ours.support[0], ours.support[1])
    pixels = photo[..., 0].numel() if mask is None else int(mask.sum())
    assert ours.histogram.sum() == truth.histogram.sum() == 3 * pixels
    # A residual on the edge of a bin may fall to either side of it.
    assert (ours.histogram.cumsum(0) - truth.histogram.cumsum(0)).abs().max() <= 0.02 * pixels


def row_sums(view, splats, bases):
    """All sums of one view against a black photo."""
    sums = NormalSums.zero(len(splats), bases, 1)
    photo = torch.zeros(view.camera.height, view.camera.width, 3)
    view.survey(photo, None, (0.0, 0.0, 0.0), sums.of_fold(0))
    return sums


def test_squares_bound_row_sums():
    """Row sums of a matrix without negative entries are at least its diagonal."""
    splats, camera, _ = scene()
    view = NativeView(splats, camera)
    sums = row_sums(view, splats, 1)
    rows = sums.moments[:, 1, 0] * (4 * torch.pi) ** 0.5
    assert (sums.squares <= rows * (1 + 1e-6)).all()


def test_the_preconditioner_bounds_the_operator():
    """x^T H x <= x^T M x, so that preconditioned eigenvalues lie in (0, 1]."""
    splats, camera, generator = scene()
    view = NativeView(splats, camera)
    sums = row_sums(view, splats, 9)
    row, column = torch.tril_indices(9, 9)
    blocks = torch.zeros(len(splats), 9, 9, dtype=torch.float64)
    blocks[:, row, column] = blocks[:, column, row] = sums.blocks.double()
    for _ in range(20):
        x = torch.randn(len(splats), 9, generator=generator).double()
        image = torch.zeros_like(x)
        view.field_normal(x, None, image)
        assert (x * image).sum() <= torch.einsum("na,nab,nb->", x, blocks, x)
    # Equality where the field is the same everywhere.
    constant = torch.zeros(len(splats), 9, dtype=torch.float64)
    constant[:, 0] = 1
    image = torch.zeros_like(constant)
    view.field_normal(constant, None, image)
    assert relative(image, (blocks @ constant[:, :, None])[..., 0]) < 1e-5


def test_kernels_have_the_same_bits_for_any_number_of_threads(threads):
    splats, camera, generator = scene(20_000, (333, 217))
    view = NativeView(splats, camera)
    coefficients = torch.randn(len(splats), 9, generator=generator)
    photo = torch.rand(camera.height, camera.width, 3, generator=generator)
    mask = photo[..., 0] > 0.3

    def everything():
        result = torch.zeros(len(splats), 9, dtype=torch.float64)
        view.field_normal(coefficients, mask, result)
        sums = NormalSums.zero(len(splats), 9, 1)
        view.survey(photo, mask, (0.1, 0.2, 0.3), sums.of_fold(0))
        return [result, *vars(sums).values()]

    threads(1)
    first = everything()
    for count in (2, 8):
        threads(count)
        assert all(torch.equal(a, b) for a, b in zip(first, everything(), strict=True))


def test_views_are_kept_only_while_they_fit():
    capture = tiny_capture()
    cameras = [view.camera for view in capture.training]
    size = NativeView(capture.splats, cameras[0]).nbytes
    for limit, kept in ((0, 0), (2 * size + size // 2, 2), (1 << 30, len(cameras))):
        views = PreparedViews(capture.splats, cameras, backend="cpu", limit=limit)
        first = list(views)
        assert sum(a is b for a, b in zip(first, views, strict=True)) == kept
        assert views.used <= limit
    x, normal = torch.rand(len(capture.splats), 4), NormalOperator(views, lambda _: None)
    assert torch.equal(normal(x), normal(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": torch.zeros(600, 5)}, "1, 4, 9 or 16 harmonics, got 5"),
        ({"coefficients": torch.zeros(599, 9)}, r"coefficients has shape \[599, 9\]"),
        ({"means": torch.zeros(600, 2)}, r"means has shape \[600, 2\]"),
        ({"mask": torch.zeros(3, 3, dtype=torch.uint8)}, r"mask has shape \[3, 3\]"),
    ],
)
def test_wrong_shapes_are_refused_by_name(change, message):
    splats, camera, _ = scene()
    coefficients = change.get("coefficients", torch.zeros(600, 9))
    arguments = {
        "view": NativeView(splats, camera)._prepared,
        "means": splats.means,
        "coefficients": coefficients,
        "mask": None,
        "result": torch.zeros(coefficients.shape, dtype=torch.float64),
    }
    with pytest.raises(ValueError, match=message):
        _native.field_normal(**arguments | change)


def test_kernels_take_prepared_views_only():
    with pytest.raises((TypeError, RuntimeError)):
        _native.field_values("view", torch.zeros(1, 3), torch.zeros(1, 1), torch.zeros(1))  # type: ignore[arg-type]
