# SPDX-License-Identifier: Apache-2.0
import pickle
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from scene_writers import photo, write_colmap
from splatcert import camera as cameras_module
from splatcert.errors import InputError
from splatcert.scene.lens import Lens
from splatcert.scene.load import load_scene
from splatcert.scene.pixels import (
    ImageError,
    Photo,
    PixelCache,
    decode,
    decode_mask,
    read_header,
)

RNG = np.random.default_rng(0)


def lens(width, height) -> Lens:
    return Lens(fx=50, fy=50, cx=width / 2, cy=height / 2, width=width, height=height)


def opened(path, size=(8, 6), **options) -> Photo:
    return Photo(path, lens(*size), options.pop("to", size), **options)


def test_an_image_is_float_srgb_as_stored(tmp_path):
    pixels = photo(tmp_path / "a.png", (8, 6))
    image = opened(tmp_path / "a.png").image()
    assert image.dtype == torch.float32 and image.shape == (6, 8, 3)
    assert torch.equal(image, torch.tensor(pixels) / 255)
    image.zero_()  # the caller's copy, not the cache's
    assert opened(tmp_path / "a.png").image().any()


@pytest.mark.parametrize("mode", ["L", "1", "P", "CMYK", "LA", "RGBA", "YCbCr"])
def test_every_common_mode_becomes_rgb(tmp_path, mode):
    path = tmp_path / ("a.tif" if mode in ("CMYK", "YCbCr") else "a.png")
    Image.fromarray(RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8)).convert(mode).save(path)
    rgb, alpha = decode(path)
    assert rgb.shape == (6, 8, 3) and rgb.dtype == np.uint8
    assert (alpha is not None) == (mode in ("LA", "RGBA")) == read_header(path).has_alpha
    if mode == "L":
        assert (rgb[..., 0] == rgb[..., 2]).all()


def test_sixteen_bits_are_rounded_to_eight(tmp_path):
    values = np.array([[0, 128, 257, 32896, 65535, 65400]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "grey.png")
    rgb, _ = decode(tmp_path / "grey.png")
    assert rgb[0, :, 0].tolist() == [0, 0, 1, 128, 255, 254]
    colour = RNG.integers(0, 65536, (6, 8, 3), dtype=np.uint16)
    cv2.imwrite(str(tmp_path / "colour.png"), colour[..., ::-1])
    rgb, _ = decode(tmp_path / "colour.png")
    assert np.abs(rgb - colour / 257).max() <= 1.01


def test_exif_orientation_is_ignored(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 6), (200, 0, 0)).save(tmp_path / "a.jpg", exif=exif)
    assert read_header(tmp_path / "a.jpg").size == (8, 6)
    assert opened(tmp_path / "a.jpg").pixels().shape == (6, 8, 3)


def test_a_turned_photo_is_told_why_it_does_not_fit(tmp_path):
    write_colmap(tmp_path)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (48, 64)).save(tmp_path / "images/photo_01.png", "JPEG", exif=exif)
    with pytest.raises(
        ImageError, match=r"48 x 64 pixels, its camera 64 x 48(.|\n)*EXIF"
    ) as caught:
        load_scene(tmp_path)
    assert len(str(caught.value).splitlines()) <= 5


def test_a_smaller_picture_is_the_area_average(tmp_path):
    pixels = photo(tmp_path / "a.png", (8, 6))
    small = opened(tmp_path / "a.png", to=(4, 3)).pixels()
    blocks = pixels.reshape(3, 2, 4, 2, 3).mean(axis=(1, 3))
    assert np.abs(small - blocks).max() <= 0.5


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:20], lambda b: b""])
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_a_damaged_photo_is_named(tmp_path, damage, suffix):
    path = tmp_path / f"broken.{suffix}"
    photo(path, (200, 150))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ImageError, match="broken") as caught:
        decode(path)
    assert "cannot be decoded" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


def test_a_damaged_photo_shows_up_when_it_is_looked_at(tmp_path):
    write_colmap(tmp_path)
    path = tmp_path / "images/photo_01.png"
    path.write_bytes(path.read_bytes()[:4000])
    scene = load_scene(tmp_path)
    with pytest.raises(InputError, match=r"photo_01\.png"):
        scene.training["photo_01.png"].image()


def test_programs_disguised_as_photos_are_not_run(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    with pytest.raises(ImageError, match="cannot be decoded"):
        read_header(tmp_path / "a.png")


def test_pixel_bombs_are_refused_and_the_limit_named(tmp_path, monkeypatch):
    photo(tmp_path / "a.png", (20, 10))
    monkeypatch.setattr(cameras_module, "MAX_PIXELS", 199)
    with pytest.raises(
        ImageError, match=r"20 x 10 pixels; the limit is 199 \(splatcert.camera.MAX_PIXELS\)"
    ):
        read_header(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(ImageError, match="the limit is 199"):
        decode(tmp_path / "a.png")


def test_a_photo_that_changed_after_loading_is_refused(tmp_path):
    photo(tmp_path / "a.png", (8, 6))
    view = opened(tmp_path / "a.png")
    photo(tmp_path / "a.png", (8, 7))
    with pytest.raises(ImageError, match="Load the scene again"):
        view.pixels()


def test_alpha_is_composited_on_the_background(tmp_path):
    rgba = RNG.integers(0, 256, (6, 8, 4), dtype=np.uint8)
    rgba[0, 0] = (10, 20, 30, 0)
    Image.fromarray(rgba).save(tmp_path / "a.png")
    for background in ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.2, 0.4, 0.6)):
        pixels = opened(tmp_path / "a.png", background=background).pixels()
        weight = rgba[..., 3:] / 255
        expected = rgba[..., :3] * weight + np.array(background) * 255 * (1 - weight)
        assert np.abs(pixels - expected).max() <= 0.51
    assert np.array_equal(opened(tmp_path / "a.png").pixels(), rgba[..., :3])


def test_alpha_as_mask_counts_from_one_half(tmp_path):
    rgba = RNG.integers(0, 256, (6, 8, 4), dtype=np.uint8)
    Image.fromarray(rgba).save(tmp_path / "a.png")
    counted = opened(tmp_path / "a.png", alpha_is_mask=True).counted()
    assert np.array_equal(counted, rgba[..., 3] >= 128)


@pytest.mark.parametrize("mode", ["L", "1", "RGB", "I;16"])
def test_black_is_left_out_and_anything_else_counts(tmp_path, mode):
    values = np.zeros((6, 8), dtype=np.uint16 if mode == "I;16" else np.uint8)
    values[2:4, 1:5] = 255 if mode == "1" else 1
    image = Image.fromarray(values)
    (image if mode == "I;16" else image.convert(mode)).save(tmp_path / "m.png")
    assert np.array_equal(decode_mask(tmp_path / "m.png"), values > 0)


def test_palettes_of_masks_are_looked_up(tmp_path):
    """Index 0 may well be white."""
    values = np.zeros((6, 8), dtype=np.uint8)
    values[2:4, 1:5] = 1
    image = Image.fromarray(values)
    image.putpalette([255, 255, 255, 0, 0, 0])
    image.save(tmp_path / "m.png")
    assert np.array_equal(decode_mask(tmp_path / "m.png"), values == 0)


def test_a_reduced_pixel_counts_only_if_all_of_it_counts(tmp_path):
    photo(tmp_path / "a.png", (8, 6))
    mask = np.full((6, 8), 255, dtype=np.uint8)
    mask[0, 0] = mask[3, 5] = 0
    Image.fromarray(mask).save(tmp_path / "m.png")
    counted = opened(tmp_path / "a.png", to=(4, 3), mask_path=tmp_path / "m.png").counted()
    expected = np.ones((3, 4), dtype=bool)
    expected[0, 0] = expected[1, 2] = False
    assert np.array_equal(counted, expected)


def test_masks_of_another_size_are_brought_to_the_photo(tmp_path):
    photo(tmp_path / "a.png", (8, 6))
    small = np.array([[0, 255], [255, 255]], dtype=np.uint8).repeat(3, 0).repeat(4, 1)
    for scale in (1, 2):
        Image.fromarray(small.repeat(scale, 0).repeat(scale, 1)).save(tmp_path / "m.png")
        counted = opened(tmp_path / "a.png", mask_path=tmp_path / "m.png").counted()
        assert np.array_equal(counted, small > 0)
    Image.fromarray(np.array([[0, 0, 9, 9]] * 2 + [[9] * 4], dtype=np.uint8)).save(
        tmp_path / "m.png"
    )
    counted = opened(tmp_path / "a.png", mask_path=tmp_path / "m.png").counted()
    assert counted.sum() == 6 * 8 - 4 * 4 and not counted[:4, :4].any()


def test_cache_stays_within_its_limit(tmp_path):
    """Twelve pictures of 64 x 48 through a cache that holds three."""
    write_colmap(tmp_path, count=12)
    limit = 3 * 64 * 48 * 3
    scene = load_scene(tmp_path, holdout=None, cache_bytes=limit)
    cache = scene.training[0].source.cache
    for view in [*scene.training, *scene.training]:
        view.image()
        assert 0 < cache.used <= limit and len(cache) <= 3
    assert cache.used == limit


def test_cache_keeps_what_was_used_last_and_makes_each_array_once():
    cache, made = PixelCache(30), []

    def make(key):
        def build():
            made.append(key)
            return np.zeros(10, dtype=np.uint8)

        return build

    for key in "abcadab":
        cache.get(key, make(key))
    assert made == ["a", "b", "c", "d", "b"]
    assert cache.used == 30
    cache.get("large", lambda: np.zeros(31, dtype=np.uint8))
    assert cache.used == 30 and len(cache) == 3
    with pytest.raises(ValueError):
        cache.get("a", make("a"))[0] = 1
    with pytest.raises(ValueError):
        PixelCache(-1)


def test_cache_of_no_bytes_still_serves(tmp_path):
    photo(tmp_path / "a.png", (8, 6))
    cache = PixelCache(0)
    assert opened(tmp_path / "a.png", cache=cache).image().shape == (6, 8, 3)
    assert cache.used == 0


def test_cache_is_shared_by_threads_and_empty_after_pickling():
    cache = PixelCache(1000)
    with ThreadPoolExecutor(4) as pool:
        arrays = list(
            pool.map(lambda k: cache.get(k % 7, lambda: np.full(50, k % 7, np.uint8)), range(200))
        )
    assert [int(a[0]) for a in arrays] == [k % 7 for k in range(200)]
    assert cache.used == 350
    copy = pickle.loads(pickle.dumps(cache))
    assert (copy.limit, copy.used, len(copy)) == (1000, 0, 0)
