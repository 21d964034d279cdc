"""Scattering coefficients of images: averages of moduli of wavelet transforms (Bruna and Mallat).

Order 0 is the image's average ``x * phi``, order 1 ``|x * psi_1| * phi``, order 2
``||x * psi_1| * psi_2| * phi`` with psi_2 of a coarser scale than psi_1. The wavelets are Morlet's,
of `SCALES` octaves and `ANGLES` orientations; phi is a Gaussian of the coarsest scale. Averages are
sampled every `STRIDE` pixels: 16 x 16 pixels give 127 x 16 = 2,032 numbers, as in section 4.6 of
Parrish's thesis.
"""

from functools import cache

import numpy as np
from scipy import fft

SCALES, ANGLES, STRIDE = 3, 6, 4
MARGIN = 8  # pixels by which images are reflected at their edges
BLOCK = 128  # images at a time
WIDTH, FREQUENCY = 0.8, 0.75 * np.pi  # of the finest wavelet
SLANT = 4 / ANGLES  # ratio of the Gaussian's frequency widths along and across the wave's crests


def scattering(images):
    """Return the coefficients (n, c), float32, of square images (n, size, size), path by path."""
    n, size = images.shape[:2]
    rows = np.asarray(images, dtype=np.float32)
    parts = [_of_block(rows[start : start + BLOCK], size) for start in range(0, n, BLOCK)]
    return np.concatenate(parts)


def _of_block(images, size):
    around = ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    padded = np.pad(images, around, mode="reflect")
    waves = filters(size + 2 * MARGIN)[0]
    found = [padded]
    whole = fft.fft2(padded)
    for scale in range(SCALES):
        for wave in waves[scale]:
            once = np.abs(fft.ifft2(whole * wave))
            found.append(once)
            if scale + 1 < SCALES:
                spectrum = fft.fft2(once)
                coarser = (w for later in waves[scale + 1 :] for w in later)
                found += [np.abs(fft.ifft2(spectrum * w)) for w in coarser]
    averages = [one.reshape(len(one), -1) @ _averaging(size) for one in found]
    return np.concatenate(averages, axis=1)


@cache
def filters(size):
    """Transforms (size, size) of the wavelets by scale and orientation, and of the average."""
    waves = tuple(
        tuple(_morlet(size, scale, np.pi * angle / ANGLES) for angle in range(ANGLES))
        for scale in range(SCALES)
    )
    average = _transform(_gaussian(size, WIDTH * 2 ** (SCALES - 1), 0.0, 1.0)(0.0))
    return waves, average


def _morlet(size, scale, angle):
    """Return a wave under a Gaussian, minus a multiple of the Gaussian, with sum 0."""
    around = _gaussian(size, WIDTH * 2**scale, angle, SLANT)
    wave, envelope = around(FREQUENCY / 2**scale), around(0.0)
    return _transform(wave - wave.sum() / envelope.sum() * envelope)


def _gaussian(size, width, angle, slant):
    """Return a function from a frequency to its periodic wave under a Gaussian of sum 1."""
    shifts = size * np.arange(-2, 3)
    place = np.add.outer(np.arange(size), shifts)
    down, right = place[:, None, :, None], place[None, :, None, :]
    along = right * np.cos(angle) + down * np.sin(angle)
    across = down * np.cos(angle) - right * np.sin(angle)
    envelope = np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
    norm = 2 * np.pi * width**2 / slant

    def wave(frequency):
        return (envelope * np.exp(1j * frequency * along)).sum(axis=(2, 3)) / norm

    return wave


def _transform(wave):
    """Return the Fourier transform, which is real because waves are symmetric about 0."""
    return np.fft.fft2(wave).real.astype(np.float32)


@cache
def _averaging(size):
    """Return the matrix ((size + 2 MARGIN)^2, (size / STRIDE)^2) that averages and subsamples."""
    whole = size + 2 * MARGIN
    kernel = np.fft.ifft2(filters(whole)[1].astype(np.float64)).real
    at = MARGIN + np.arange(0, size, STRIDE)
    steps = np.arange(whole)[:, None] - at[None, :]
    columns = kernel[steps[:, None, :, None] % whole, steps[None, :, None, :] % whole]
    return columns.reshape(whole**2, -1).astype(np.float32)
