"""Features of patches: plain loops, invariance under shifts, channels, batches, and bad rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat import GEM, ClassMoments
from eigenfeat.gem import GEMPatches

RNG = np.random.default_rng(4)
IMAGES = RNG.standard_normal((30, 9, 7)) * np.linspace(1, 2, 7)
LABELS = np.arange(30) % 3
IMAGES[LABELS == 1] *= np.array([1, -1, 2, 1, -2, 1, 1.0])


def plain(gem, images, patch, stride, pool, reduce):
    """Features by loops over rows, places and cells."""
    (p, q), (s, t), (a, b) = patch, stride, pool
    out = []
    for image in images:
        down, across = image.shape[0] - p, image.shape[1] - q
        grid = np.array(
            [
                [
                    gem.transform(image[i : i + p, j : j + q].reshape(1, -1))[0]
                    for j in range(0, across + 1, t)
                ]
                for i in range(0, down + 1, s)
            ]
        )
        h, w = grid.shape[:2]
        cells = [
            grid[c * h // a : (c + 1) * h // a, e * w // b : (e + 1) * w // b]
            for c in range(a)
            for e in range(b)
        ]
        out.append(np.concatenate([reduce(cell, axis=(0, 1)) for cell in cells]))
    return np.array(out)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_features_are_those_of_plain_loops(pooling):
    gem = GEM(n_directions=2, threshold=0)
    model = GEMPatches(gem, patch_size=(3, 2), stride=(2, 1), pool=(3, 4), pooling=pooling)
    found = model.fit(IMAGES, LABELS).transform(IMAGES[:5])
    patches = [
        x[i : i + 3, j : j + 2].ravel() for x in IMAGES for i in (0, 2, 4, 6) for j in range(6)
    ]
    assert_array_equal(model.gem_.moments_.weight(0), 10 * 24)
    moments = ClassMoments().update(patches, np.repeat(LABELS, 24))
    own = GEM(n_directions=2, threshold=0).fit_moments(moments)
    assert_allclose(model.gem_.eigenvalues_, own.eigenvalues_, rtol=1e-10)
    reduce = np.mean if pooling == "mean" else np.max
    expected = plain(model.gem_, IMAGES[:5], (3, 2), (2, 1), (3, 4), reduce)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert found.shape[1] == len(model.get_feature_names_out())


def test_mean_over_one_cell_does_not_change_when_an_object_moves():
    small, y = RNG.standard_normal((40, 4, 4)), np.arange(40) % 2
    small[y == 1, :, 1:3] *= 3
    images, moved = np.zeros((2, 40, 16, 16))
    images[:, 5:9, 5:9], moved[:, 8:12, 3:7] = small, small
    model = GEMPatches(patch_size=4, pool=1).fit(images, y)
    assert_allclose(model.transform(moved), model.transform(images), rtol=1e-10)
    cells = GEMPatches(patch_size=4, pool=4).fit(images, y)
    assert not np.allclose(cells.transform(moved), cells.transform(images))


def test_channels_lie_first_or_last_flat_or_not():
    signals = RNG.standard_normal((24, 3, 20))
    y = np.arange(24) % 2
    signals[y == 1, 1] *= 2
    first = GEMPatches(grid_shape=(20,), channels="first", patch_size=5).fit(signals, y)
    expected = first.transform(signals)
    assert (first.n_channels_, first.grid_shape_, first.n_features_in_) == (3, (20,), 60)
    flat = GEMPatches(grid_shape=(20,), channels="first", patch_size=5)
    assert_array_equal(flat.fit_transform(signals.reshape(24, 60), y), expected)
    last = GEMPatches(grid_shape=(20,), patch_size=5)
    assert_array_equal(last.fit_transform(signals.transpose(0, 2, 1), y), expected)
    one = GEMPatches(patch_size=5).fit(signals[:, 1], y)
    assert one.n_channels_ == 1
    assert_array_equal(
        one.transform(signals[:, 1]), one.fit(signals[:, 1], y).transform(signals[:, 1])
    )
    coloured = RNG.standard_normal((12, 6, 5, 3))
    assert GEMPatches(patch_size=2).fit(coloured, y[:12]).n_channels_ == 3


def test_batches_give_the_fit_of_all_images():
    whole = GEMPatches(patch_size=3).fit(IMAGES, LABELS)
    parts = GEMPatches(patch_size=3)
    for rows in (slice(0, 5), slice(5, 30)):
        parts.partial_fit(IMAGES[rows], LABELS[rows], classes=[0, 1, 2])
    assert_allclose(parts.transform(IMAGES), whole.transform(IMAGES), rtol=1e-7, atol=1e-9)


def test_padding_puts_zeros_around():
    padded = np.pad(IMAGES, ((0, 0), (2, 2), (1, 1)))
    whole = GEMPatches(patch_size=4).fit(padded, LABELS)
    model = GEMPatches(patch_size=4, padding=(2, 1)).fit(IMAGES, LABELS)
    assert_array_equal(model.transform(IMAGES), whole.transform(padded))
