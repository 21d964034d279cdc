"""Speech as rows: mel frequency cepstra with their derivatives and neighbours, and frame targets.

The recipe, as in section 4.3 of the GEM paper:

1. pre-emphasis ``x[t] - 0.97 x[t - 1]``;
2. Hamming windows of 25 ms every 10 ms, and their power spectra;
3. 26 triangular filters, equally spaced on the mel scale ``2595 log10(1 + f / 700)`` from 0 to half
   the sample rate; the logarithm of what passes each;
4. the orthonormal cosine transform (DCT-II): cepstra 1 to 12, then the logarithm of the window's
   energy before pre-emphasis;
5. regression deltas over two frames on either side, and the deltas of these: 39 numbers a frame;
6. five frames before and five after, oldest first: 429 columns.

Steps 5 and 6 repeat edges, so every frame has a row of columns from its own recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.ndimage import correlate1d

from eigenfeat._base.validation import check_number, real_array, show

PRE_EMPHASIS = 0.97
WINDOW_SECONDS, STEP_SECONDS = 0.025, 0.010
MIN_POWER = 1e-10  # of silence, relative to full scale, for logarithms
FSDD_ARRAYS = ("audio", "offsets", "digit", "speaker", "speaker_names", "sample_rate")


@dataclass(frozen=True, eq=False)
class Frames:
    """Rows of frames, in the order of the recordings.

    ``X`` (n, 429) float32; ``y`` (n,) targets; ``recording`` and ``speaker`` (n,) numbers;
    ``speaker_names`` by speaker number.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    recording: NDArray[np.int64]
    speaker: NDArray[np.int64]
    speaker_names: tuple[str, ...]

    def spoken_by(self, *names):
        """Return indices of the frames of these speakers; a ValueError names an unknown speaker."""
        for name in names:
            if name not in self.speaker_names:
                known = ", ".join(self.speaker_names)
                raise ValueError(f"names: expected speakers out of {known}, got {show(name)}")
        return np.flatnonzero(np.isin(self.speaker, [self.speaker_names.index(n) for n in names]))


def mfcc(audio, sample_rate, *, n_cepstra=12, n_filters=26):
    """Mel frequency cepstra and log energy of each window, steps 1 to 4 of the recipe.

    Returns (n, n_cepstra + 1): cepstra from number 1, then log energy. Powers below 1e-10 count as
    1e-10, so silence is finite. Integer samples are divided by their type's largest value. Windows
    fit within the recording; a shorter recording is padded with zeros. A ValueError names empty or
    infinite samples, a sample rate below 200, whose steps have no samples, or a filter that is too
    narrow for the frequencies of the spectrum.
    """
    samples = _samples(audio)
    rate = check_number(sample_rate, "sample_rate", at_least=200)
    size, step = round(WINDOW_SECONDS * rate), round(STEP_SECONDS * rate)
    emphasised = np.concatenate([samples[:1], samples[1:] - PRE_EMPHASIS * samples[:-1]])
    n_bins = 1 << (size - 1).bit_length()  # the next power of two
    spectra = np.fft.rfft(_windows(emphasised, size, step) * np.hamming(size), n_bins)
    passed = np.abs(spectra) ** 2 @ _mel_filters(n_filters, n_bins, rate).T
    cepstra = dct(np.log(np.maximum(passed, MIN_POWER)), norm="ortho")[:, 1 : n_cepstra + 1]
    energy = np.sum(_windows(samples, size, step) ** 2, axis=1)
    return np.column_stack([cepstra, np.log(np.maximum(energy, MIN_POWER))])


def deltas(frames, width=2):
    """Slopes of the columns (n, d) over time, of a recording whose edges are repeated.

    ``sum_k k (c[t+k] - c[t-k]) / (2 sum_k k^2)``, k up to `width`.
    """
    steps = np.arange(-width, width + 1)
    return correlate1d(frames, steps, axis=0, mode="nearest") / (steps @ steps)


def with_context(frames, before=5, after=5):
    """Append to each frame (n, d) its neighbours, oldest first; edges are repeated."""
    padded = np.pad(frames, ((before, after), (0, 0)), mode="edge")
    return np.hstack([padded[k:][: len(frames)] for k in range(before + 1 + after)])


def mfcc_with_deltas(audio, sample_rate):
    """Steps 1 to 5 of the recipe: 13 numbers a frame, their deltas, and the deltas of these."""
    static = mfcc(audio, sample_rate)
    first = deltas(static)
    return np.hstack([static, first, deltas(first)])


def frame_targets(n_frames, digit, n_states=3):
    """Targets of a recording's frames: ``digit * n_states + state``, states of equal duration.

    In place of a phone alignment, the recording is cut into `n_states` parts with nearly equal
    numbers of frames; parts of a recording with fewer frames are empty.
    """
    return digit * n_states + np.arange(n_frames, dtype=np.int64) * n_states // n_frames


def fsdd_frames(source, n_states=3):
    """Frames of the Free Spoken Digit Dataset: an ``.npz`` file or its arrays `FSDD_ARRAYS`.

    `audio` has all recordings end to end; `offsets` are the starts of all recordings and the end of
    the last. A ValueError names a missing array or inconsistent sizes.
    """
    if not isinstance(source, Mapping):
        with np.load(source, allow_pickle=False) as file:
            return fsdd_frames({name: file[name] for name in file.files}, n_states)
    arrays = _checked_recordings(source)
    rate = float(arrays["sample_rate"])
    rows, targets = [], []
    for number, digit in enumerate(arrays["digit"].tolist()):
        start, stop = arrays["offsets"][number : number + 2]
        frames = mfcc_with_deltas(arrays["audio"][start:stop], rate)
        rows.append(with_context(frames.astype(np.float32)))
        targets.append(frame_targets(len(frames), digit, n_states))
    lengths = [len(part) for part in rows]
    return Frames(
        X=np.concatenate(rows),
        y=np.concatenate(targets),
        recording=np.repeat(np.arange(len(rows)), lengths),
        speaker=np.repeat(arrays["speaker"].astype(np.int64), lengths),
        speaker_names=tuple(str(name) for name in arrays["speaker_names"]),
    )


def _checked_recordings(arrays):
    missing = [name for name in FSDD_ARRAYS if name not in arrays]
    if missing:
        raise ValueError(f"source: expected arrays {', '.join(FSDD_ARRAYS)}, got no {missing[0]}")
    checked = {name: np.asarray(arrays[name]) for name in FSDD_ARRAYS}
    offsets, n = checked["offsets"], len(checked["digit"])
    if n == 0 or checked["speaker"].shape != (n,) or offsets.shape != (n + 1,):
        sizes = f"{n} digits, {len(checked['speaker'])} speakers, {len(offsets)} offsets"
        raise ValueError(f"source: expected as many speakers and one offset more, got {sizes}")
    inside = offsets[0] >= 0 and offsets[-1] <= len(checked["audio"])
    if not (inside and np.all(np.diff(offsets) > 0)):
        raise ValueError("source: expected rising offsets within audio, got others")
    if not 0 <= int(checked["speaker"].max()) < len(checked["speaker_names"]):
        raise ValueError("source: expected a name for every speaker, got fewer")
    return checked


def _samples(audio):
    given = np.asarray(audio)
    samples = np.asarray(real_array(given, "audio"), dtype=np.float64)
    if samples.ndim != 1 or not len(samples):
        raise ValueError(f"audio: expected one row of samples, got shape {samples.shape}")
    if not np.isfinite(samples).all():
        at = int(np.argmin(np.isfinite(samples)))
        raise ValueError(f"audio: expected finite samples, got {samples[at]} at {at}")
    return samples / np.iinfo(given.dtype).max if given.dtype.kind in "iu" else samples


def _windows(samples, size, step):
    """Windows that fit as a whole, (n, size), without a copy; one if the recording is shorter."""
    if len(samples) < size:
        samples = np.pad(samples, (0, size - len(samples)))
    return np.lib.stride_tricks.sliding_window_view(samples, size)[::step]


@cache
def _mel_filters(n_filters, n_bins, rate):
    """Triangles (n_filters, n_bins / 2 + 1): 1 in the middle, 0 at the neighbours' middles."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, n_filters + 2) / 2595) - 1)
    low, middle, high = (corners[k : k + n_filters, None] for k in range(3))
    hertz = np.arange(n_bins // 2 + 1) * rate / n_bins
    rising, falling = (hertz - low) / (middle - low), (high - hertz) / (high - middle)
    filters = np.maximum(0, np.minimum(rising, falling))
    if not filters.any(axis=1).all():
        raise ValueError(
            f"n_filters: expected so few that each holds a frequency of the spectrum of {n_bins} "
            f"samples, got {n_filters}"
        )
    return filters
