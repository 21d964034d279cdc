"""Scattering coefficients against sums that are written out."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from bench.papers.ldg import resized
from bench.papers.scattering import scattering

SIZE, WHOLE = 16, 32


def envelope_and_wave(scale, angle, wanders):
    """Gaussian and plane wave on a square of WHOLE pixels, which goes on periodically."""
    place = np.arange(-2 * WHOLE, 3 * WHOLE)
    down, right = np.meshgrid(place, place, indexing="ij")
    turn = np.pi * angle / 6
    along = right * np.cos(turn) + down * np.sin(turn)
    across = down * np.cos(turn) - right * np.sin(turn)
    width, slant = 0.8 * 2**scale, 2 / 3 if wanders else 1.0
    gaussian = np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
    wave = gaussian * np.exp(0.75j * np.pi / 2**scale * along)
    folded = [
        part.reshape(5, WHOLE, 5, WHOLE).sum(axis=(0, 2)) * slant / (2 * np.pi * width**2)
        for part in (gaussian, wave)
    ]
    return folded


def convolved(image, kernel):
    at = np.arange(WHOLE)
    steps = (at[:, None] - at[None, :]) % WHOLE
    whole = kernel[steps[:, None, :, None], steps[None, :, None, :]].reshape(WHOLE**2, -1)
    return (whole @ image.ravel()).reshape(WHOLE, WHOLE)


def modulus(image, scale, angle):
    gaussian, wave = envelope_and_wave(scale, angle, True)
    return np.abs(convolved(image, wave - wave.sum() / gaussian.sum() * gaussian))


def test_paths_are_moduli_of_convolutions_averaged(rng):
    image = rng.random((SIZE, SIZE))
    padded = np.pad(image, 8, mode="reflect")
    found = scattering(image[None]).reshape(127, 4, 4)
    low = envelope_and_wave(2, 0, False)[0]
    # Paths in order: the image; then each wave of scale 0, followed by what it gives with the
    # twelve of scales 1 and 2; and so on.
    fine = 1 + 13 * 2
    paths = {
        0: padded,
        fine: modulus(padded, 0, 2),
        fine + 1 + 6 + 5: modulus(modulus(padded, 0, 2), 2, 5),
        1 + 13 * 6 + 7 * 4 + 1 + 3: modulus(modulus(padded, 1, 4), 2, 3),
        126: modulus(padded, 2, 5),
    }
    for number, path in paths.items():
        expected = convolved(path, low)[8:24:4, 8:24:4]
        assert_allclose(found[number], expected, atol=2e-6)


def test_resized_images(rng):
    images = rng.random((2, 28, 28))
    small = resized(images, 16)
    assert_allclose(resized(np.ones((1, 28, 28)), 16), 1, rtol=1e-12)
    assert_allclose(resized(images, 28), images, rtol=1e-12)
    assert_allclose(small.mean(), images.mean(), rtol=0.02)
    ramp = np.tile(np.arange(28.0), (1, 28, 1))
    inside = (np.arange(16) + 0.5) * 28 / 16 - 0.5
    assert_allclose(resized(ramp, 16)[0, 5, 1:-1], inside[1:-1], atol=0.2)
