"""Simulated epochs of many channels, and a stand-in for MNE's Epochs."""

import numpy as np


def recording(rng, n=60, channels=8, times=100, k=3, strength=3.0):
    """Epochs of mixed sources, labels, and the mixing; in class c source c has more power."""
    y = np.arange(n) % k
    sources = rng.standard_normal((n, channels, times))
    sources[np.arange(n), y] *= strength
    mixing = rng.standard_normal((channels, channels))
    return mixing @ sources, y, mixing


class Epochs:
    """The attributes of mne.Epochs that the package reads."""

    def __init__(self, data, sfreq, names):
        self._data, self.info, self.ch_names = data, {"sfreq": sfreq}, list(names)

    def get_data(self):
        return self._data
