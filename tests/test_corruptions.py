import colorsys
import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage  # type: ignore[import-untyped]
from torch import Tensor
from torch.testing import assert_close

from calibrant.lab.corruptions import CORRUPTIONS, corrupt
from calibrant.lab.corruptions import _blur as blur
from calibrant.lab.corruptions import _colour as colour
from calibrant.lab.corruptions import _digital as digital
from calibrant.lab.corruptions import _filters as filters
from calibrant.lab.corruptions import _spatter as spattering
from calibrant.lab.corruptions._plasma import plasma
from calibrant.lab.corruptions._weather import frost

every_corruption = pytest.mark.parametrize("name", CORRUPTIONS)

# Where the constants of CIFAR-C do not make the images differ more and more: two by their nature
# (saturation goes down, then up; the elastic pull grows while the shear shrinks), frost because
# the image itself fades, the others since one constant falls while another rises.
UNEVEN = {"saturate", "elastic_transform", "frost", "glass_blur", "motion_blur", "spatter"}


@pytest.fixture(scope="module")
def images() -> Tensor:
    """Smooth coloured shapes with texture: enough like photographs for every corruption."""
    rng = np.random.default_rng(0)
    smooth = ndimage.gaussian_filter(rng.normal(size=(24, 3, 32, 32)), (0, 0, 3, 3))
    fine = ndimage.gaussian_filter(rng.normal(size=(24, 3, 32, 32)), (0, 0, 0.7, 0.7))
    mixed = 128 + 450 * smooth + 40 * fine
    return torch.from_numpy(mixed.clip(0, 255).astype(np.uint8))


def distance(one: Tensor, other: Tensor) -> float:
    return float((one.float() - other.float()).square().mean().sqrt())


def test_there_are_nineteen_of_which_four_are_extra() -> None:
    assert len(CORRUPTIONS) == 19
    assert [name for name, each in CORRUPTIONS.items() if each.extra] == [
        "speckle_noise",
        "gaussian_blur",
        "spatter",
        "saturate",
    ]
    assert all(len(each.constants) == 5 for each in CORRUPTIONS.values())


@every_corruption
def test_keeps_shape_and_bytes_and_is_the_same_each_time(name: str, images: Tensor) -> None:
    few = images[:6]
    before = few.clone()
    for severity in (1, 3, 5):
        once = corrupt(few, name, severity, seed=7)
        assert once.shape == few.shape
        assert once.dtype == torch.uint8
        assert_close(once, corrupt(few, name, severity, seed=7))
        assert not torch.equal(once, few)
    assert_close(few, before)


STILL = {
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
}


@every_corruption
def test_the_seed_rules_what_is_random_and_only_that(name: str, images: Tensor) -> None:
    same = torch.equal(corrupt(images, name, 3, seed=0), corrupt(images, name, 3, seed=1))
    assert same == (name in STILL)


@every_corruption
def test_images_differ_more_the_more_severe_it_is(name: str, images: Tensor) -> None:
    away = [distance(corrupt(images, name, severity), images) for severity in range(1, 6)]
    if name in UNEVEN:
        assert min(away) > 2
    else:
        assert away == sorted(away)
        assert away[4] > 1.2 * away[0]


@every_corruption
@pytest.mark.parametrize("grey", [0, 255])
def test_black_and_white_images_are_no_trouble(name: str, grey: int) -> None:
    flat = torch.full((3, 3, 32, 32), grey, dtype=torch.uint8)
    for severity in (1, 5):
        made = corrupt(flat, name, severity)
        assert made.shape == flat.shape
        if name.endswith("blur") and name not in ("glass_blur",):
            assert (made.int() - flat.int()).abs().max() <= 1


def test_what_cannot_be_corrupted_gets_a_sentence(images: Tensor) -> None:
    with pytest.raises(ValueError, match=r"name must be one of gaussian_noise.*; got 'rain'"):
        corrupt(images, "rain", 1)
    with pytest.raises(ValueError, match="severity must be 1, 2, 3, 4 or 5; got 0"):
        corrupt(images, "fog", 0)
    with pytest.raises(ValueError, match=r"images must be bytes of shape \(n, 3, 32, 32\)"):
        corrupt(images[:, :1], "fog", 1)
    with pytest.raises(ValueError, match=r"got torch.float32"):
        corrupt(images.float(), "fog", 1)
    assert len(corrupt(images[:0], "fog", 1)) == 0


# Noise has the strength it says.


def grey_images(level: int, n: int = 40) -> Tensor:
    return torch.full((n, 3, 32, 32), level, dtype=torch.uint8)


def spread(made: Tensor) -> float:
    return float(made.float().std())


@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [
        ("gaussian_noise", 128, 255 * 0.10),
        ("speckle_noise", 100, 100 * 0.2),
        ("shot_noise", 128, 255 / 50 * math.sqrt(128 / 255 * 50)),
    ],
)
def test_noise_has_the_spread_of_its_constant(name: str, level: int, expected: float) -> None:
    made = corrupt(grey_images(level), name, 5)
    n = made.numel()
    allowed = 4 * expected / math.sqrt(2 * n) + 0.1  # bytes are cut, which adds a little
    assert spread(made) == pytest.approx(expected, abs=allowed)
    # Values are cut down to whole numbers, half a step on average.
    assert float(made.float().mean()) == pytest.approx(
        level - 0.5, abs=0.51 + 4 * expected / math.sqrt(n)
    )


def test_impulses_take_a_share_half_to_black_and_half_to_white() -> None:
    made = corrupt(grey_images(100), "impulse_noise", 5)
    for value in (0, 255):
        share = float((made == value).float().mean())
        assert share == pytest.approx(0.035, abs=4 * math.sqrt(0.035 / made.numel()))
    assert set(made.unique().tolist()) == {0, 100, 255}


# Filters agree with SciPy and with definitions written slowly.


@pytest.mark.parametrize("edge", ["nearest", "mirror", "reflect"])
@pytest.mark.parametrize("sigma", [0.4, 0.6, 1.0, 6.4])
def test_gaussian_blur_is_scipys(edge: Any, sigma: float, images: Tensor) -> None:
    some = images[:2].double()
    expected = ndimage.gaussian_filter(some.numpy(), (0, 0, sigma, sigma), mode=edge, truncate=3.0)
    made = filters.gaussian_blur(some, sigma, edge, truncate=3.0)
    assert_close(made, torch.from_numpy(expected))


@pytest.mark.parametrize("edge", ["nearest", "mirror", "reflect"])
def test_filters_are_correlations(edge: Any, images: Tensor) -> None:
    some = images[:2].double()
    kernel = torch.arange(9.0).reshape(3, 3)
    expected = ndimage.correlate(some.numpy(), kernel.double().numpy()[None, None], mode=edge)
    assert_close(filters.filtered(some, kernel, edge), torch.from_numpy(expected))


@pytest.mark.parametrize("factor", [1.0, 1.01, 1.17, 1.25, 1.75, 2.25])
def test_zooming_is_scipys(factor: float, images: Tensor) -> None:
    some = images[0].double().numpy()
    cut = math.ceil(32 / factor)
    first = (32 - cut) // 2
    middle = some[:, first : first + cut, first : first + cut]
    larger = ndimage.zoom(middle, (1, factor, factor), order=1)
    first = (larger.shape[1] - 32) // 2
    expected = larger[:, first : first + 32, first : first + 32]
    made = filters.zoomed(images[:1].double(), factor)
    assert_close(made[0], torch.from_numpy(expected))


def test_defocus_is_a_softened_disc(images: Tensor) -> None:
    place = np.arange(-8, 9)
    disc = (place[:, None] ** 2 + place**2 <= 1.5**2).astype(float)
    rim = np.exp(-0.5 * (np.array([-1, 0, 1]) / 0.6) ** 2)
    soft = ndimage.correlate(disc / disc.sum(), np.outer(rim, rim) / rim.sum() ** 2)
    expected = ndimage.correlate(images[:2].double().numpy(), soft[None, None], mode="mirror")
    made = blur.defocus(images[:2].double(), torch.Generator(), 1.5, 0.6)
    assert_close(made, torch.from_numpy(expected))


@pytest.mark.parametrize("degrees", [0.0, 37.0, -45.0, -90.0, -135.0])
def test_motion_smears_along_its_direction(degrees: float, images: Tensor) -> None:
    radius, sigma = 3, 1.5
    weights = [math.exp(-0.5 * (tap / sigma) ** 2) for tap in range(2 * radius + 1)]
    image = images[0, 0].double().numpy()
    expected = np.zeros((32, 32))
    for row in range(32):
        for column in range(32):
            for tap, weight in enumerate(weights):
                right = math.ceil(tap * math.cos(math.radians(degrees)) - 0.5)
                down = math.ceil(tap * math.sin(math.radians(degrees)) - 0.5)
                seen = image[min(max(row + down, 0), 31), min(max(column + right, 0), 31)]
                expected[row, column] += weight / sum(weights) * seen
    made = blur.moved(images[:1].double(), radius, sigma, torch.tensor([degrees]))
    assert_close(made[0, 0], torch.from_numpy(np.floor(expected + 0.5)), atol=1, rtol=0)
    assert float((made[0, 0] != torch.from_numpy(np.floor(expected + 0.5))).double().mean()) < 0.01


def test_glass_copies_pixels_as_the_original_loop_does(images: Tensor) -> None:
    draws = torch.Generator().manual_seed(5)
    made = blur.glass(images[:2].float(), draws, 0.05, 1, 2)
    again = torch.Generator().manual_seed(5)
    seen = images[:2].permute(0, 2, 3, 1).numpy().copy()
    for _ in range(2):
        offset = torch.randint(-1, 1, (2, 2, 32, 32), generator=again).numpy()
        for image in range(2):
            x = seen[image]
            for h in range(31, 1, -1):
                for w in range(31, 1, -1):
                    there = x[h + offset[0, image, h, w], w + offset[1, image, h, w]]
                    here = x[h, w]
                    # Views of one array: the second assignment copies back what was just written.
                    x[h, w] = there
                    there[:] = here
    assert_close(made, torch.from_numpy(seen).permute(0, 3, 1, 2).float())


def test_zoom_blur_is_the_mean_of_all_zooms(images: Tensor) -> None:
    some = images[:2].double()
    factors = np.arange(1, 1.06, 0.01)
    expected = (some + sum(filters.zoomed(some, float(each)) for each in factors)) / 8
    assert len(factors) == 7
    assert_close(blur.zoom(some, torch.Generator(), 1.06), expected)


# Colours


def test_colours_are_pythons(images: Tensor) -> None:
    some = images[:1, :, ::4, ::4].double() / 255
    some[0, :, 0, 0], some[0, :, 0, 1] = 0.0, 0.5
    hue, saturation, value = colour.hue_saturation_value(some)
    for row in range(8):
        for column in range(8):
            expected = colorsys.rgb_to_hsv(*some[0, :, row, column].tolist())
            found = (hue[0, row, column] / 6, saturation[0, row, column], value[0, row, column])
            assert [float(each) for each in found] == pytest.approx(expected)
    assert_close(colour.red_green_blue(hue, saturation, value), some)


def test_contrast_keeps_the_mean_of_each_channel_and_brightness_raises_the_value(
    images: Tensor,
) -> None:
    some = images[:3].double()
    made = colour.contrast(some, torch.Generator(), 0.4)
    assert_close(made.mean(dim=(2, 3)), some.mean(dim=(2, 3)))
    assert_close(made.std(dim=(2, 3)), 0.4 * some.std(dim=(2, 3)))
    brighter = colour.brightness(some, torch.Generator(), 0.1)
    assert_close(brighter.amax(1), (some.amax(1) + 25.5).clamp(max=255))
    pale = colour.saturate(some, torch.Generator(), 0.0, 0.0)
    assert_close(pale, some.amax(1, keepdim=True).expand_as(some))


# Files and screens


@pytest.mark.parametrize("share", [0.95, 0.9, 0.85, 0.75, 0.65])
def test_pixels_are_pillows(share: float, images: Tensor) -> None:
    pillow = pytest.importorskip("PIL.Image")
    made = digital.pixelate(images[:4].float(), torch.Generator(), share)
    for image, got in zip(images[:4], made, strict=True):
        full = pillow.fromarray(image.permute(1, 2, 0).numpy())
        small = full.resize((int(32 * share), int(32 * share)), pillow.Resampling.BOX)
        expected = np.asarray(small.resize((32, 32), pillow.Resampling.BOX)).copy()
        assert_close(got, torch.from_numpy(expected).permute(2, 0, 1).float())


def test_jpeg_is_pillows(images: Tensor) -> None:
    pillow = pytest.importorskip("PIL.Image")
    made = corrupt(images[:3], "jpeg_compression", 5)
    for image, got in zip(images[:3], made, strict=True):
        file = io.BytesIO()
        pillow.fromarray(image.permute(1, 2, 0).numpy()).save(file, "JPEG", quality=40)
        assert_close(got.permute(1, 2, 0), torch.from_numpy(np.asarray(pillow.open(file)).copy()))


def test_an_elastic_pull_of_nothing_is_the_image_and_edges_are_scipys(images: Tensor) -> None:
    some = images[:3].float()
    still = digital.elastic_transform(some, torch.Generator(), 0.0, 0.0, 0.0)
    assert_close(still, some, atol=1e-2, rtol=0)
    places = 40 * torch.rand(3, 32, 32, 2, generator=torch.Generator().manual_seed(0)) - 4
    for corners, edge in ((True, "mirror"), (False, "reflect")):
        made = digital._taken(some, places, corners=corners)
        where = places[0].permute(2, 0, 1).flip(0).double().numpy()
        expected = ndimage.map_coordinates(some[0, 0].double().numpy(), where, order=1, mode=edge)
        assert_close(made[0, 0].double(), torch.from_numpy(expected), atol=2e-2, rtol=0)


def test_an_elastic_shear_brings_each_point_to_where_it_was_moved(images: Tensor) -> None:
    ramp = torch.arange(32.0).expand(1, 3, 32, 32).clone()
    ramp[:, 1] = ramp[0, 0].T
    made = digital.elastic_transform(ramp, torch.Generator().manual_seed(1), 0.0, 0.0, 2.0)
    again = torch.Generator().manual_seed(1)
    moves = -2 + 4 * torch.rand(1, 3, 2, generator=again)[0]
    for (right, down), move in zip([(26, 26), (26, 6), (6, 6)], moves, strict=True):
        where = torch.tensor([[[[right + move[0], down + move[1]]]]])
        seen = digital._taken(made, where, corners=True)[0, :2, 0, 0]
        # Between pixels near the mirrored edge the ramp bends, so not to the last digit.
        assert_close(seen, torch.tensor([float(right), float(down)]), atol=0.3, rtol=0)


# Weather


def test_clouds_fill_their_range_and_are_rougher_the_slower_the_decay() -> None:
    clouds = {decay: plasma(50, 32, decay, torch.Generator().manual_seed(0)) for decay in (1.75, 3)}
    for cloud in clouds.values():
        assert cloud.shape == (50, 1, 32, 32)
        assert_close(cloud.amin(dim=(1, 2, 3)), torch.zeros(50))
        assert_close(cloud.amax(dim=(1, 2, 3)), torch.ones(50))
    rough, smooth = (cloud.diff(dim=3).abs().mean() for cloud in clouds.values())
    assert rough > smooth


def test_clouds_are_means_of_their_neighbours_where_nothing_is_random() -> None:
    (cloud,) = plasma(1, 8, math.inf, torch.Generator().manual_seed(0))[0]  # the first halving is
    for step in (4, 2):
        half = step // 2
        for row in range(0, 8, step):
            for column in range(0, 8, step):
                corners = [cloud[row, column], cloud[(row + step) % 8, column]]
                corners += [cloud[row, (column + step) % 8]]
                corners += [cloud[(row + step) % 8, (column + step) % 8]]
                assert_close(cloud[row + half, column + half], torch.stack(corners).mean())
                for down, right in ((0, half), (half, 0)):  # the middles of two edges
                    here = row + down, column + right
                    around = [
                        cloud[(here[0] + up) % 8, (here[1] + left) % 8]
                        for up, left in ((half, 0), (-half, 0), (0, half), (0, -half))
                    ]
                    assert_close(cloud[here], torch.stack(around).mean())
    assert cloud.std() > 0.1


def test_fog_leaves_the_brightest_value_and_lightens_the_rest() -> None:
    image = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    image[0, :, 0, 0] = 200
    made = corrupt(image, "fog", 5)
    assert made.max() <= 200
    assert made.float().mean() > 30


def test_frost_is_paler_and_bluer_and_comes_from_the_same_sheets() -> None:
    black = torch.zeros(200, 3, 32, 32)
    made = frost(black, torch.Generator().manual_seed(0), 1.0, 1.0)
    red, green, blue = made.mean(dim=(0, 2, 3)).tolist()
    assert red < green < blue <= 255
    assert made.std(dim=(2, 3)).mean() > 15
    assert_close(made, frost(black, torch.Generator().manual_seed(0), 1.0, 1.0))


def test_snow_falls_in_both_directions() -> None:
    black = torch.zeros(30, 3, 32, 32, dtype=torch.uint8)
    made = corrupt(black, "snow", 4)
    assert_close(made[:, 0], made[:, 2])
    turned = made.flip(2, 3)
    assert (made.int() - turned.int()).abs().max() <= 1


# Water


def test_distances_are_scipys_and_no_edge_is_far() -> None:
    edge = torch.rand(4, 1, 32, 32, generator=torch.Generator().manual_seed(0)) > 0.98
    made = spattering._distance(edge)
    for own, got in zip(edge[:, 0], made[:, 0], strict=True):
        assert_close(got, torch.from_numpy(ndimage.distance_transform_edt(~own.numpy())).float())
    assert spattering._distance(torch.zeros(1, 1, 8, 8, dtype=torch.bool)).min() > 20


def test_a_square_has_its_outline_for_edges() -> None:
    image = torch.zeros(1, 1, 32, 32)
    image[..., 10:20, 10:20] = 200
    edge = spattering.edges(image, 50, 150)[0, 0]
    assert 30 <= int(edge.sum()) <= 44  # one pixel thick
    inside = torch.zeros(32, 32, dtype=torch.bool)
    inside[9:21, 9:21], inside[12:18, 12:18] = True, False
    assert not edge[~inside].any()
    faint = spattering.edges(image / 200 * 12, 50, 150)  # slope 48: below both
    assert not faint.any()


def test_weak_edges_count_only_where_they_are_joined_to_strong_ones() -> None:
    image = torch.zeros(1, 1, 32, 32)
    image[..., 4:12, 16:] = 20.0  # slope 80, alone
    image[..., 16:22, 16:] = 20.0
    image[..., 22:28, 16:] = 60.0  # slope 240, below it
    edge = spattering.edges(image, 50, 150)[0, 0]
    assert not edge[5:11, 12:18].any()
    assert edge[17:21, 14:18].any(dim=1).all()


def test_levels_are_equalised_as_counts_say() -> None:
    levels = torch.zeros(1, 1, 32, 32)
    levels[..., :8, :], levels[..., 8:16, :] = 5, 20  # a quarter each; half are 0
    made = spattering._equalised(levels)
    assert made[0, 0, [20, 0, 10], 0].tolist() == [0, 128, 255]
    flat = torch.full((1, 1, 32, 32), 7.0)
    assert_close(spattering._equalised(flat), flat)


def test_mud_is_brown_and_water_is_turquoise() -> None:
    grey = grey_images(120, 20)
    mud = corrupt(grey, "spatter", 5).float()
    covered = mud[:, 0] < 100
    assert 0.01 < float(covered.float().mean()) < 0.5
    red, green, blue = (float(mud[:, channel][covered].mean()) for channel in range(3))
    assert red > green > blue
    water = corrupt(grey, "spatter", 1).float()
    assert water.min() >= 119
    gained = (water - 120).clamp(min=0).sum(dim=(0, 2, 3))
    assert_close(gained[1], gained[2])
    assert gained[0] < gained[1]
