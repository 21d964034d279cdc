"""Common spatial patterns of simulated EEG: seconds and accuracy beside MNE's, at 4 classes.

    python bench/eeg.py [--channels 128] [--epochs 320] [--times 256] [--seeds 3]
    python bench/eeg.py --motions [FOLDER]

Rhythms of sources in a mixing that decays with distance, about one of which each class has more
power; noise of many weaker sources. Half of the epochs are trained on. MNE diagonalises all four
covariances jointly (Pham's algorithm) and orders by mutual information; `SpatialFilters` solves one
problem for each class, or for each two. Log-powers go to LDA with shrinkage.

With `--motions` the recordings are real: BasicMotions (J. Clements, UEA archive), 6 channels of a
watch's accelerometer and gyroscope, 4 activities, 40 epochs of 100 samples to train on and 40 to
test. aeon brings its files; FOLDER is where they are, by default in the installed aeon.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import SpatialFilters


def recording(seed, n, channels, times, classes=4, sources=40, rate=128.0):
    """Epochs (n, channels, times) in volts, referenced to the average, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    spots = rng.standard_normal((channels + sources, 3))
    spots /= np.linalg.norm(spots, axis=1, keepdims=True)
    sensors, origins = spots[:channels], 0.8 * spots[channels:]
    gain = 1.0 / (0.1 + ((sensors[:, None] - origins) ** 2).sum(axis=2))
    size = rng.gamma(4.0, 0.25, (n, sources))
    size[np.arange(n), y] *= 2.0
    clock = np.arange(times) / rate
    phase = rng.uniform(0, 2 * np.pi, (n, sources, 1))
    pitch = rng.uniform(8, 13, (n, sources, 1))
    waves = np.sqrt(2) * np.sin(2 * np.pi * pitch * clock + phase)
    X = gain @ (size[..., None] * waves) + 0.5 * rng.standard_normal((n, channels, times))
    return 1e-6 * (X - X.mean(axis=1, keepdims=True)), y


def motions(folder=None):
    """BasicMotions: epochs (40, 6, 100) and labels of its training part, and of its test part."""
    if folder is None:
        found = find_spec("aeon")
        if found is None:
            raise FileNotFoundError("aeon is not installed, and no folder given")
        folder = Path(found.submodule_search_locations[0]) / "datasets/data/BasicMotions"
    parts = []
    for part in ("TRAIN", "TEST"):
        lines = (Path(folder) / f"BasicMotions_{part}.ts").read_text("utf-8").split("@data")[1]
        *channels, labels = zip(*(line.split(":") for line in lines.split()), strict=True)
        series = [[one.split(",") for one in channel] for channel in channels]
        parts.append((np.array(series, dtype=float).swapaxes(0, 1), np.array(labels)))
    return parts


def of_motions(folder):
    """Accuracy on the test part, and out of folds of random epochs of both parts."""
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline

    (X, y), (Z, z) = motions(folder)
    makers = {f"SpatialFilters({m})": SpatialFilters(m) for m in (1, 2, 6)}
    makers["SpatialFilters(2, pairs='all')"] = SpatialFilters(2, pairs="all")
    if find_spec("mne"):
        import mne

        mne.set_log_level("ERROR")
        makers |= {f"MNE CSP({m})": mne.decoding.CSP(n_components=m) for m in (4, 6)}
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0)
    for name, filters in makers.items():
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        model = make_pipeline(filters, lda)
        started = time.perf_counter()
        model.fit(X, y)
        took = 1e3 * (time.perf_counter() - started)
        inside = cross_val_score(model, np.concatenate([X, Z]), np.concatenate([y, z]), cv=folds)
        print(f"{name:32} {took:6.1f} ms   {model.score(Z, z):.3f}, folds {inside.mean():.3f}")


def measure(make, train, test):
    """Seconds of fit and transform, and accuracy of LDA behind."""
    started = time.perf_counter()
    model = make.fit(*train)
    fitted = time.perf_counter() - started
    features = model.transform(train[0])
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(features, train[1])
    return fitted, float(np.mean(lda.predict(model.transform(test[0])) == test[1]))


def main():
    """Print a line for each method: medians over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("channels", 128), ("epochs", 320), ("times", 256), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--motions", nargs="?", type=Path, const=Path(), metavar="FOLDER")
    given = parser.parse_args()
    if given.motions is not None:
        of_motions(None if given.motions == Path() else given.motions)
        return
    makers = {
        "SpatialFilters(2)": lambda rank: SpatialFilters(2),
        "SpatialFilters(8)": lambda rank: SpatialFilters(8),
        "SpatialFilters(2, pairs='all')": lambda rank: SpatialFilters(2, pairs="all"),
    }
    try:
        import mne

        mne.set_log_level("ERROR")
        csp = mne.decoding.CSP
        makers["MNE CSP(8)"] = lambda rank: csp(n_components=8, rank={"eeg": rank})
        makers["MNE CSP(32)"] = lambda rank: csp(n_components=32, rank={"eeg": rank})
    except ImportError:
        print("mne is not installed: its lines are left out")
    found = {name: [] for name in makers}
    for seed in range(given.seeds):
        X, y = recording(seed, given.epochs, given.channels, given.times)
        half = given.epochs // 2
        for name, make in makers.items():
            train, test = (X[:half], y[:half]), (X[half:], y[half:])
            found[name].append(measure(make(given.channels - 1), train, test))
    for name, results in found.items():
        seconds, accuracy = np.array(results).T
        print(f"{name:32} {np.median(seconds):8.3f} s   accuracy {accuracy.mean():.3f}")


if __name__ == "__main__":
    main()
