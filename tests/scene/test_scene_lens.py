# SPDX-License-Identifier: Apache-2.0
"""Undistortion, against the lens formulas written out here and pictures known in closed form."""

import numpy as np
import pytest
from PIL import Image

from scene_writers import reconstruction
from splatcert.scene.lens import Lens, LensError, distort, pinhole_of, same_shape, undistort
from splatcert.scene.load import load_scene
from splatcert.scene.pixels import Photo

SIZE = (160, 120)
F, CX, CY = 130.0, 78.0, 63.0

# Parameters of each COLMAP model, and the Brown (k1 k2 p1 p2 k3 k4 k5 k6) or fisheye
# (k1 k2 k3 k4) coefficients they stand for.
BROWN = {
    "SIMPLE_RADIAL": ((F, CX, CY, -0.12), (-0.12, 0, 0, 0, 0, 0, 0, 0)),
    "RADIAL": ((F, CX, CY, -0.2, 0.05), (-0.2, 0.05, 0, 0, 0, 0, 0, 0)),
    "OPENCV": ((F, 126.0, CX, CY, 0.08, -0.03, 0.004, -0.006), None),
    "FULL_OPENCV": (
        (F, 126.0, CX, CY, 0.2, 0.05, 0.003, 0.002, 0.01, 0.15, 0.02, 0.004),
        (0.2, 0.05, 0.003, 0.002, 0.01, 0.15, 0.02, 0.004),
    ),
}
FISHEYE = {
    "OPENCV_FISHEYE": ((F, 126.0, CX, CY, 0.05, -0.02, 0.01, -0.002), (0.05, -0.02, 0.01, -0.002)),
    "SIMPLE_RADIAL_FISHEYE": ((F, CX, CY, -0.08), (-0.08, 0, 0, 0)),
    "RADIAL_FISHEYE": ((F, CX, CY, 0.06, -0.03), (0.06, -0.03, 0, 0)),
}


def intrinsics(model, params):
    """fx, fy, cx, cy."""
    return params[:4] if "OPENCV" in model else (params[0], params[0], *params[1:3])


def bent(model, params, x, y):
    """Distorted direction by the published formula of the model."""
    if model in BROWN:
        coefficients = BROWN[model][1] or (*params[4:], 0, 0, 0, 0)
        k1, k2, p1, p2, k3, k4, k5, k6 = coefficients
        r2 = x * x + y * y
        radial = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
        return (
            x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x),
            y * radial + 2 * p2 * x * y + p1 * (r2 + 2 * y * y),
        )
    k1, k2, k3, k4 = FISHEYE[model][1]
    radius = np.hypot(x, y)
    angle = np.arctan(radius)
    grown = angle * (1 + k1 * angle**2 + k2 * angle**4 + k3 * angle**6 + k4 * angle**8)
    ratio = np.where(radius > 1e-12, grown / np.maximum(radius, 1e-12), 1.0)
    return x * ratio, y * ratio


def straightened(model, params, u, v):
    """The direction that is bent to (u, v): Newton's method with numerical slopes."""
    x, y, step = u.copy(), v.copy(), 1e-6
    for _ in range(30):
        a, b = bent(model, params, x, y)
        ax, bx = bent(model, params, x + step, y)
        ay, by = bent(model, params, x, y + step)
        j = np.array([[ax - a, ay - a], [bx - b, by - b]]) / step
        det = j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0]
        x = x - (j[1, 1] * (a - u) - j[0, 1] * (b - v)) / det
        y = y - (j[0, 0] * (b - v) - j[1, 0] * (a - u)) / det
    return x, y


def pattern(x, y):
    """A soft checker on the plane at distance one, three different channels."""
    channels = [
        np.sin(18 * x + 1) * np.sin(15 * y),
        np.cos(11 * x - 9 * y),
        np.sin(13 * y + 4 * x),
    ]
    return 0.5 + 0.45 * np.stack(channels, axis=-1)


def directions(size, fx, fy, cx, cy):
    columns, rows = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    return (columns - cx) / fx, (rows - cy) / fy


@pytest.mark.parametrize("model", [*BROWN, *FISHEYE])
def test_lens_bends_rays_as_published(tmp_path, model):
    params = (BROWN | FISHEYE)[model][0]
    lens = colmap_lens(tmp_path, model, params)
    rays = np.random.default_rng(0).uniform(-0.5, 0.5, size=(50, 2))
    u, v = bent(model, params, rays[:, 0], rays[:, 1])
    fx, fy, cx, cy = intrinsics(model, params)
    expected = np.column_stack([fx * u + cx, fy * v + cy])
    assert np.allclose(distort(lens, rays), expected, atol=1e-6)


def colmap_lens(folder, model, params) -> Lens:
    from splatcert.scene.readers.colmap import lens_of, read_colmap

    written, _, _ = reconstruction(size=SIZE, model=model, params=params)
    written.write(folder, "bin")
    return lens_of(read_colmap(folder).cameras[1], folder, folder / "images")


@pytest.mark.parametrize("model", [*BROWN, *FISHEYE])
def test_undistorted_pixels_line_up_with_the_pinhole(tmp_path, model):
    """A photo of a known pattern taken through the lens, undone, is the pinhole's photo."""
    params = (BROWN | FISHEYE)[model][0]
    fx, fy, cx, cy = intrinsics(model, params)
    u, v = directions(SIZE, fx, fy, cx, cy)
    taken = pattern(*straightened(model, params, u, v))
    written, _, _ = reconstruction(count=2, size=SIZE, model=model, params=params)
    written.write(tmp_path / "sparse/0", "bin")
    (tmp_path / "images").mkdir()
    for name in ("photo_00.png", "photo_01.png"):
        Image.fromarray(np.rint(taken * 255).astype(np.uint8)).save(tmp_path / "images" / name)
    view = load_scene(tmp_path, holdout=None).training[0]
    camera, image = view.camera, view.image().numpy()
    assert image.shape == (camera.height, camera.width, 3)
    truth = pattern(
        *directions((camera.width, camera.height), *camera.K[[0, 1, 0, 1], [0, 1, 2, 2]])
    )
    difference = np.abs(image - truth)
    assert difference.max() < 0.03
    # Half a pixel of misalignment would show many times over.
    shifted = pattern(
        *directions((camera.width, camera.height), camera.fx, camera.fy, camera.cx + 0.5, camera.cy)
    )
    assert difference.mean() < 0.2 * np.abs(image - shifted).mean()


@pytest.mark.parametrize("model", [*BROWN, *FISHEYE])
def test_canvas_keeps_the_focal_length_and_is_as_large_as_the_photo_allows(tmp_path, model):
    params = (BROWN | FISHEYE)[model][0]
    lens = colmap_lens(tmp_path, model, params)
    flat = pinhole_of(lens)
    assert (flat.fx, flat.fy, flat.kind) == (lens.fx, lens.fy, "pinhole")
    assert flat.cx / flat.width == pytest.approx(lens.cx / lens.width)

    def outside(width, height):
        cx, cy = lens.cx * width / lens.width, lens.cy * height / lens.height
        x, y = directions((width, height), lens.fx, lens.fy, cx, cy)
        pixels = distort(lens, np.column_stack([x.ravel(), y.ravel()]))
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        return (low < 0.5 - 2e-3).any() or (high > np.array(lens.size) - 0.5 + 2e-3).any()

    assert not outside(flat.width, flat.height)
    assert outside(flat.width + 2, flat.height)
    assert outside(flat.width, flat.height + 2)


def test_no_distortion_is_no_resampling():
    lens = Lens(fx=51, fy=52, cx=31, cy=23, width=64, height=48, kind="brown", distortion=(0,) * 4)
    assert lens.kind == "pinhole" and pinhole_of(lens) is lens
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    assert undistort(image, lens) is image


def test_wide_fisheye_is_cut_at_twice_the_photo():
    lens = Lens(
        fx=380, fy=380, cx=500, cy=333, width=1000, height=666, kind="fisheye", distortion=(0,) * 4
    )
    flat = pinhole_of(lens)
    assert flat.width == 2000 and flat.height <= 1332
    assert flat.fx == 380


def test_a_polynomial_that_folds_back_gives_no_ghosts():
    """k1 < 0 alone turns back at r = sqrt(-1 / 3 k1); the canvas must end before."""
    lens = Lens(
        fx=100,
        fy=100,
        cx=100,
        cy=75,
        width=200,
        height=150,
        kind="brown",
        distortion=(-0.5, 0, 0, 0),
    )
    flat = pinhole_of(lens)
    corner = np.hypot(flat.cx / flat.fx, flat.cy / flat.fy)
    assert corner < np.sqrt(1 / 1.5) + 0.02


def test_a_lens_without_any_picture_is_refused():
    lens = Lens(
        fx=20, fy=20, cx=100, cy=75, width=200, height=150, kind="brown", distortion=(-60, 0, 0, 0)
    )
    with pytest.raises(LensError, match="image_undistorter"):
        pinhole_of(lens)


def test_lens_scales_with_the_photo():
    """Undistorting a half-size photo gives half the canvas, to a pixel."""
    lens = Lens(
        fx=400, fy=410, cx=330, cy=235, width=640, height=480, kind="brown",
        distortion=(-0.1, 0.02, 0.001, -0.001),
    )  # fmt: skip
    large, small = pinhole_of(lens), pinhole_of(lens.resized(320, 240))
    assert abs(large.width / 2 - small.width) <= 1.5
    assert small.fx == pytest.approx(large.fx / 2)


def test_masks_are_undistorted_with_the_photo(tmp_path):
    """A pixel counts only if everything it was interpolated from counts."""
    lens = Lens(
        fx=F, fy=F, cx=CX, cy=CY, width=160, height=120, kind="brown", distortion=(-0.1, 0, 0, 0)
    )
    Image.new("RGB", SIZE).save(tmp_path / "p.png")
    mask = np.full((120, 160), 255, dtype=np.uint8)
    mask[40:60, 50:90] = 0
    Image.fromarray(mask).save(tmp_path / "m.png")
    flat = pinhole_of(lens)
    counted = Photo(tmp_path / "p.png", lens, flat.size, mask_path=tmp_path / "m.png").counted()
    x, y = directions(flat.size, flat.fx, flat.fy, flat.cx, flat.cy)
    source = distort(lens, np.column_stack([x.ravel(), y.ravel()])).reshape(*x.shape, 2)
    deep = (np.abs(source[..., 0] - 70) < 19) & (np.abs(source[..., 1] - 50) < 9)
    far = (np.abs(source[..., 0] - 70) > 22) | (np.abs(source[..., 1] - 50) > 12)
    assert not counted[deep].any() and counted[far].all()
    assert deep.any() and far.any()


def test_undistortion_is_deterministic(tmp_path):
    params = BROWN["OPENCV"][0]
    lens = colmap_lens(tmp_path, "OPENCV", params)
    image = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    assert np.array_equal(undistort(image, lens), undistort(image.copy(), lens))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ((4946, 3286), (1237, 822), True),
        ((4946, 3286), (618, 411), True),
        ((1957, 1091), (979, 546), True),
        ((640, 480), (1280, 960), True),
        ((640, 480), (480, 640), False),
        ((640, 480), (640, 470), False),
        ((4000, 3000), (1000, 700), False),
    ],
)
def test_uniform_rescales_are_recognised(old, new, same):
    assert same_shape(old, new) is same
