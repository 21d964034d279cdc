"""Mel frequency cepstra against loops, derivatives and context by hand, frames of recordings."""

from __future__ import annotations

import numpy as np
import pytest

from bench.papers import recordings as speech


def slow_mfcc(audio, rate, n_cepstra=12, n_filters=26):
    """The recipe of `bench.papers.recordings`, one window, filter and cepstrum after another."""
    samples = [float(x) for x in audio]
    size, step = round(0.025 * rate), round(0.010 * rate)
    samples += [0.0] * (size - len(samples))
    emphasised = [x - 0.97 * before for x, before in zip(samples[1:], samples, strict=False)]
    emphasised.insert(0, samples[0])
    emphasised[len(audio) :] = [0.0] * (len(samples) - len(audio))
    n_bins = 1
    while n_bins < size:
        n_bins *= 2
    hamming = [0.54 - 0.46 * np.cos(2 * np.pi * t / (size - 1)) for t in range(size)]
    to_mel = lambda hertz: 2595 * np.log10(1 + hertz / 700)  # noqa: E731
    corners = [
        700 * (10 ** (to_mel(rate / 2) * k / (n_filters + 1) / 2595) - 1)
        for k in range(n_filters + 2)
    ]
    rows = []
    for start in range(0, len(samples) - size + 1, step):
        window = [emphasised[start + t] * hamming[t] for t in range(size)]
        power = np.abs(np.fft.fft(window, n_bins)) ** 2
        logs = []
        for low, middle, high in zip(corners, corners[1:], corners[2:], strict=False):
            passed = 0.0
            for k in range(n_bins // 2 + 1):
                hertz = k * rate / n_bins
                if low < hertz <= middle:
                    passed += power[k] * (hertz - low) / (middle - low)
                elif middle < hertz < high:
                    passed += power[k] * (high - hertz) / (high - middle)
            logs.append(np.log(max(passed, 1e-10)))
        row = [
            np.sqrt(2 / n_filters)
            * sum(logs[m] * np.cos(np.pi * q * (m + 0.5) / n_filters) for m in range(n_filters))
            for q in range(1, n_cepstra + 1)
        ]
        energy = sum(x * x for x in samples[start : start + size])
        rows.append([*row, np.log(max(energy, 1e-10))])
    return np.array(rows)


@pytest.mark.parametrize(
    ("rate", "seconds", "n_cepstra", "n_filters"),
    [(16000, 0.061, 12, 26), (11025, 0.0301, 5, 12)],
)
def test_mfcc_agrees_with_loops(rng, rate, seconds, n_cepstra, n_filters):
    audio = rng.standard_normal(round(seconds * rate)) * 0.1
    found = speech.mfcc(audio, rate, n_cepstra=n_cepstra, n_filters=n_filters)
    expected = slow_mfcc(audio, rate, n_cepstra, n_filters)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_silence_is_finite_and_flat():
    rows = speech.mfcc_with_deltas(np.zeros(8000, dtype=np.int16), 8000)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[:, :12], 0, atol=1e-12)  # a flat spectrum has no cepstra
    assert np.all(rows[:, 12] == np.log(1e-10))
    assert not rows[:, 13:].any()


@pytest.mark.parametrize("width", [1, 3])
def test_deltas_agree_with_loops_and_find_slopes(rng, width):
    frames = rng.standard_normal((9, 4))
    found = speech.deltas(frames, width)
    at = lambda t: frames[min(max(t, 0), 8)]  # noqa: E731
    scale = 2 * sum(k * k for k in range(1, width + 1))
    for t in range(9):
        slope = sum(k * (at(t + k) - at(t - k)) for k in range(1, width + 1)) / scale
        np.testing.assert_allclose(found[t], slope, atol=1e-14)
    line = np.arange(20.0)[:, None] * [3.0, -0.5]
    np.testing.assert_allclose(
        speech.deltas(line, width)[width:-width], [[3.0, -0.5]] * (20 - 2 * width)
    )


def test_context_repeats_the_edges():
    frames = np.arange(1.0, 4.0)[:, None]
    assert speech.with_context(frames, 2, 1).tolist() == [[1, 1, 1, 2], [1, 1, 2, 3], [1, 2, 3, 3]]
    assert speech.with_context(frames.astype(np.float32)).dtype == np.float32
    assert speech.with_context(np.zeros((1, 39))).shape == (1, 429)


def test_targets_are_thirds_of_a_recording():
    assert speech.frame_targets(7, 2).tolist() == [6, 6, 6, 7, 7, 8, 8]
    assert speech.frame_targets(1, 9).tolist() == [27]
    assert speech.frame_targets(2, 0).tolist() == [0, 1]
    assert speech.frame_targets(4, 5, n_states=1).tolist() == [5] * 4


def recordings(rng):
    lengths = np.array([900, 2000, 1200])
    return {
        "audio": (rng.standard_normal(lengths.sum()) * 2000).astype(np.int16),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "digit": np.array([4, 0, 9], dtype=np.uint8),
        "speaker": np.array([1, 0, 1], dtype=np.uint8),
        "speaker_names": np.array(["ann", "bob"]),
        "sample_rate": np.array(8000),
    }


def test_frames_stay_within_their_recordings(rng, tmp_path):
    arrays = recordings(rng)
    frames = speech.fsdd_frames(arrays)
    assert frames.X.dtype == np.float32
    assert frames.X.shape == (len(frames.y), 429)
    assert frames.recording.tolist() == sorted(frames.recording)
    second = frames.X[frames.recording == 1]
    alone = speech.mfcc_with_deltas(arrays["audio"][900:2900], 8000).astype(np.float32)
    np.testing.assert_array_equal(second, speech.with_context(alone))
    np.testing.assert_array_equal(
        frames.y[frames.recording == 1], speech.frame_targets(len(alone), 0)
    )
    assert set(frames.recording[frames.spoken_by("bob")]) == {0, 2}
    assert len(frames.spoken_by("ann", "bob")) == len(frames.y)
    np.savez(tmp_path / "speech.npz", **arrays)
    again = speech.fsdd_frames(tmp_path / "speech.npz")
    np.testing.assert_array_equal(again.X, frames.X)
    assert again.speaker_names == ("ann", "bob")


@pytest.mark.long
def test_frames_of_spoken_digits(shared_data):
    frames = speech.fsdd_frames(dict(shared_data("fsdd.npz")))
    assert frames.X.shape == (125237, 429)
    assert np.isfinite(frames.X).all()
    assert set(frames.y) == set(range(30))
    assert frames.speaker_names[-2:] == ("theo", "yweweler")
