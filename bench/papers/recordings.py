"""Speech as rows: mel frequency cepstra with their derivatives and neighbours, and frame targets.

The recipe, as in section 4.3 of the GEM paper:

1. pre-emphasis ``x[t] - 0.97 x[t - 1]``;
2. Hamming windows of 25 ms every 10 ms, and their power spectra;
3. 26 triangular filters, equally spaced on the mel scale ``2595 log10(1 + f / 700)`` from 0 to half
   the sample rate; the logarithm of what passes each;
4. the orthonormal cosine transform (DCT-II): cepstra 1 to 12, then the logarithm of the window's
   energy before pre-emphasis;
5. regression deltas over two frames on either side, and the deltas of these: 39 numbers per frame;
6. five frames before and five after, oldest first: 429 columns.

Steps 5 and 6 repeat edges, so every frame has a row of columns from its own recording.
"""

from functools import cache

import numpy as np
from scipy.fft import dct
from scipy.ndimage import correlate1d

PRE_EMPHASIS = 0.97
WINDOW_SECONDS, STEP_SECONDS = 0.025, 0.010
MIN_POWER = 1e-10  # smallest power of which a logarithm is taken, relative to full scale
N_STATES = 3  # parts of a digit, in place of a phone alignment
FSDD_ARRAYS = ("audio", "offsets", "digit", "speaker", "speaker_names", "sample_rate")


def mfcc(audio, sample_rate, *, n_cepstra=12, n_filters=26):
    """Mel frequency cepstra and log energy of each window, steps 1 to 4 of the recipe.

    Returns (n, n_cepstra + 1): cepstra from number 1, then log energy. Powers below 1e-10 count as
    1e-10, so silence is finite. Integer samples are divided by their type's largest value. Windows
    fit within the recording; a shorter recording is padded with zeros.
    """
    samples = audio.astype(np.float64)
    if audio.dtype.kind in "iu":
        samples /= np.iinfo(audio.dtype).max
    size, step = round(WINDOW_SECONDS * sample_rate), round(STEP_SECONDS * sample_rate)
    emphasised = np.concatenate([samples[:1], samples[1:] - PRE_EMPHASIS * samples[:-1]])
    n_bins = 1 << (size - 1).bit_length()  # the next power of two
    spectra = np.fft.rfft(_windows(emphasised, size, step) * np.hamming(size), n_bins)
    passed = np.abs(spectra) ** 2 @ _mel_filters(n_filters, n_bins, sample_rate).T
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
    """Steps 1 to 5 of the recipe: 13 numbers per frame, their deltas, and the deltas of these."""
    static = mfcc(audio, sample_rate)
    first = deltas(static)
    return np.hstack([static, first, deltas(first)])


def frame_targets(n_frames, digit):
    """Targets of a recording's frames: ``3 digit + state``, states of nearly equal durations."""
    return digit * N_STATES + np.arange(n_frames, dtype=np.int64) * N_STATES // n_frames


def fsdd_frames(arrays):
    """Frames (n, 429) of the Free Spoken Digit Dataset, targets (n,), and speakers' names (n,).

    `arrays` has the arrays `FSDD_ARRAYS` of its file: `audio` has all recordings end to end;
    `offsets` are the starts of all recordings and the end of the last recording.
    """
    rate = float(arrays["sample_rate"])
    rows, targets = [], []
    for number, digit in enumerate(arrays["digit"].tolist()):
        start, stop = arrays["offsets"][number : number + 2]
        frames = mfcc_with_deltas(arrays["audio"][start:stop], rate)
        rows.append(with_context(frames.astype(np.float32)))
        targets.append(frame_targets(len(frames), digit))
    speakers = arrays["speaker_names"].astype(str)[arrays["speaker"]]
    lengths = [len(part) for part in rows]
    return np.concatenate(rows), np.concatenate(targets), np.repeat(speakers, lengths)


def _windows(samples, size, step):
    """Windows (n, size) that fit as a whole, without a copy; a short recording is one window."""
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
    return np.maximum(0, np.minimum(rising, falling))
