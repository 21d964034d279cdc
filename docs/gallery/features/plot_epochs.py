"""
Views of epochs
===============

`EpochClassifier` pools classifiers on several descriptions of epochs. Three simulated recordings
differ in what tells their classes apart: the power of a source, a response at a fixed time, and a
rhythm of a known frequency. In each recording, views that describe this difference get weight.
"""

import matplotlib.pyplot as plt
import numpy as np

from eigenfeat import EpochClassifier

rng = np.random.default_rng(0)
n, channels, times, rate = 160, 8, 200, 100.0
clock = np.arange(times) / rate
labels = np.arange(n) % 2
mixing = rng.normal(size=(channels, channels))
pattern = mixing[:, 0]


def noise():
    """Epochs of eight mixed sources of white noise."""
    return rng.normal(size=(n, channels, times))


power = noise()
power[labels == 1, 0] *= 1.15
power = mixing @ power

response = mixing @ noise()
wave = np.exp(-(((clock - 0.4) / 0.08) ** 2))  # 0.4 s after the event
response[labels == 1] += 0.9 * pattern[:, None] * wave

rhythm = mixing @ noise()
pitch = np.where(labels == 1, 17.0, 13.0)[:, None]
waves = np.sin(2 * np.pi * (pitch * clock + rng.uniform(size=(n, 1))))
rhythm += 0.3 * pattern[:, None] * waves[:, None, :]

# %%
# The models are fitted to half of the epochs. Only the model of the rhythm gets the frequencies of
# the stimuli.

recordings = {
    "power of a source": (power, None),
    "response": (response, None),
    "rhythm": (rhythm, [13, 17]),
}
half = n // 2
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, (epochs, frequencies)) in zip(axes, recordings.items(), strict=True):
    model = EpochClassifier(rate, frequencies=frequencies).fit(epochs[:half], labels[:half])
    accuracy = model.score(epochs[half:], labels[half:])
    print(f"{name}: accuracy {accuracy:.2f}")
    weights = {view.name: view.weight for view in model.views_}
    names = sorted(weights, reverse=True)
    ax.barh(names, [weights[one] for one in names])
    ax.set(title=f"{name}: {accuracy:.2f}", xlabel="weight")
plt.show()
