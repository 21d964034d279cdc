"""EEG and EMG: accuracy of `EpochClassifier` and its views beside MNE and pyRiemann.

    python bench/eeg.py --data FOLDER
    OPENBLAS_NUM_THREADS=1 python bench/eeg.py --data FOLDER --speed [--rounds 7]

Recordings (FOLDER holds npz files of epochs): imagined movements of eegmmidb (7 to 30 Hz, 0.5 to
2.5 s after the cue, twice five random folds), SSVEP (within a recording in five folds, and a new
person), EMG of gestures (from 20 Hz on, trained on the first session, tested on the second), and
P300 (five folds, area under the ROC curve). For SSVEP `EpochClassifier` gets the frequencies, the
others get bands of 2 Hz around them. `EpochClassifier` has its defaults everywhere. The last column
has the seconds of its fit. Packages that are not installed are left out. `eeg.csv` has the figures.

With `--speed`, `TangentSpace` and pyRiemann's covariances and tangent space take turns, on one
thread and with the same shrinkage (OAS): white noise, simulated rhythms of sources in a mixing that
decays with distance, and recorded epochs of 64 channels. Lines have the median of the ratios of
processor seconds, and the norms of the mean tangent vectors, which are 0 at the exact mean.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.signal import butter, sosfiltfilt
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from eigenfeat import EpochClassifier, SpatialFilters, TangentSpace
from results import print_markdown

STIMULI = (13, 17, 21)  # Hz, of the SSVEP recordings


def simulated(n, channels, times, sources=40, rate=128.0):
    """Epochs (n, channels, times) in volts, referenced to the average."""
    rng = np.random.default_rng(0)
    spots = rng.standard_normal((channels + sources, 3))
    spots /= np.linalg.norm(spots, axis=1, keepdims=True)
    sensors, origins = spots[:channels], 0.8 * spots[channels:]
    gain = 1.0 / (0.1 + ((sensors[:, None] - origins) ** 2).sum(axis=2))
    size = rng.gamma(4.0, 0.25, (n, sources))
    clock = np.arange(times) / rate
    phase = rng.uniform(0, 2 * np.pi, (n, sources, 1))
    pitch = rng.uniform(8, 13, (n, sources, 1))
    waves = np.sqrt(2) * np.sin(2 * np.pi * pitch * clock + phase)
    X = gain @ (size[..., None] * waves) + 0.5 * rng.standard_normal((n, channels, times))
    return 1e-6 * (X - X.mean(axis=1, keepdims=True))


def lda():
    """Linear discriminants with the covariance of Ledoit and Wolf."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def logit():
    """Logistic regression of tangent vectors."""
    return LogisticRegression(max_iter=2000)


def methods(csp_filters, **options):
    """Pipelines by name; `options` are those of our two transformers."""
    makers = {
        "filters": make_pipeline(SpatialFilters(4, **options), lda()),
        "tangent": make_pipeline(TangentSpace(**options), logit()),
    }
    if find_spec("mne"):
        import mne

        mne.set_log_level("ERROR")
        makers["MNE CSP, LDA"] = make_pipeline(mne.decoding.CSP(n_components=csp_filters), lda())
    if find_spec("pyriemann"):
        from pyriemann.classification import MDM
        from pyriemann.estimation import Covariances
        from pyriemann.tangentspace import TangentSpace as PeerSpace

        makers["pyRiemann MDM"] = make_pipeline(Covariances("oas"), MDM())
        makers["pyRiemann TS, logit"] = make_pipeline(Covariances("oas"), PeerSpace(), logit())
    return makers


def methods_of_potentials():
    """Pipelines for event-related potentials, by name."""
    makers = {"LDA of samples": make_pipeline(FunctionTransformer(flat), lda())}
    if find_spec("pyriemann"):
        from pyriemann.estimation import XdawnCovariances
        from pyriemann.tangentspace import TangentSpace as PeerSpace

        covariances = XdawnCovariances(nfilter=2, estimator="oas")
        makers["pyRiemann xDAWN, logit"] = make_pipeline(covariances, PeerSpace(), logit())
    return makers


def flat(X):
    """Samples of all channels of an epoch, side by side."""
    return X.reshape(len(X), -1)


def filtered(X, edges, kind, rate):
    """Epochs after a Butterworth filter of order 4, forward and backward."""
    return sosfiltfilt(butter(4, edges, kind, fs=rate, output="sos"), X)


def movements(data):
    """Epochs of imagined movements."""
    rate = float(data["sfreq"])
    X = filtered(data["X"] * data["scale"], (7, 30), "bandpass", rate)
    return np.ascontiguousarray(X[:, :, int(0.5 * rate) : int(2.5 * rate)])


class Task(NamedTuple):
    """Epochs and labels; `epochs` are those of the pipelines, `X` those of `EpochClassifier`."""

    name: str
    ours: EpochClassifier
    X: np.ndarray
    makers: dict
    epochs: np.ndarray
    y: np.ndarray
    splits: list
    groups: np.ndarray | None = None
    metric: str = "accuracy"


def recordings(folder):
    """Yield the tasks."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    five = StratifiedKFold(5, shuffle=True, random_state=0)
    for path in sorted(folder.glob("eegmmidb*.npz")):
        data = np.load(path)
        X, rate = movements(data), float(data["sfreq"])
        for name, labels in (("fists", (1, 2)), ("fists/feet", (3, 4)), ("4", (1, 2, 3, 4))):
            rows = np.isin(data["y"], labels)
            few, y = methods(4 if len(labels) == 2 else 8), data["y"][rows]
            splits = list(folds.split(X[rows], y))
            ours = EpochClassifier(rate)
            yield Task(f"eegmmidb {name}", ours, X[rows], few, X[rows], y, splits)
    persons = []
    for path in sorted(folder.glob("ssvep*.npz")):
        data = np.load(path)
        rate, X, y = float(data["sfreq"]), data["X"] * data["scale"], data["y"]
        bands = [filtered(X, (f - 1, f + 1), "bandpass", rate) for f in STIMULI]
        persons.append((X, np.concatenate(bands, axis=1), y))
        name, ours = path.stem.replace("_subject", " "), EpochClassifier(rate, frequencies=STIMULI)
        yield Task(name, ours, X, methods(16), persons[-1][1], y, list(five.split(X, y)))
    if len(persons) > 1:
        X, epochs, y = (np.concatenate(parts) for parts in zip(*persons, strict=True))
        person = np.repeat(np.arange(len(persons)), [len(one[2]) for one in persons])
        splits = list(LeaveOneGroupOut().split(X, y, person))
        aligned = methods(16, align="session")
        yield Task("ssvep, new person", ours, X, aligned, epochs, y, splits, person)
    for path in sorted(folder.glob("emg*.npz")):
        data = np.load(path)
        rate = float(data["sfreq"])
        X, y = filtered(data["X"] * data["scale"], 20, "highpass", rate), data["y"]
        first = data["session"] == data["session"].min()
        splits = [(np.flatnonzero(first), np.flatnonzero(~first))]
        name, ours = path.stem.replace("emg_myo_", "EMG "), EpochClassifier(rate)
        yield Task(f"{name}, next session", ours, X, methods(8), X, y, splits)
        aligned = methods(8, align="session")
        yield Task(f"{name}, aligned", ours, X, aligned, X, y, splits, data["session"])
    for path in sorted(folder.glob("muse*.npz")):
        data = np.load(path)
        X, y = data["X"] * data["scale"], data["y"]
        ours, splits = EpochClassifier(float(data["sfreq"])), list(five.split(X, y))
        yield Task(path.stem, ours, X, methods_of_potentials(), X, y, splits, None, "AUC")


def score(model, X, task, train, test):
    """Accuracy, or area under the ROC curve, on the test part of a split; seconds of the fit."""
    groups = {} if task.groups is None else {"groups": task.groups}
    given = {name: values[train] for name, values in groups.items()}
    if isinstance(model, Pipeline):
        step = model.steps[0][0]
        has_groups = getattr(model[0], "align", None) is not None
        given = {f"{step}__{name}": one for name, one in given.items()} if has_groups else {}
        groups = {}
    started = time.perf_counter()
    model = clone(model).fit(X[train], task.y[train], **given)
    took = time.perf_counter() - started
    given = {name: values[test] for name, values in groups.items()}
    if task.metric == "AUC":
        value = roc_auc_score(task.y[test], model.decision_function(X[test], **given))
    else:
        value = np.mean(model.predict(X[test], **given) == task.y[test])
    return float(value), took


def of_recordings(folder):
    """Print a table of all tasks and methods."""
    lines = {}
    for task in recordings(folder):
        models = {"EpochClassifier": (task.ours, task.X)}
        models |= {name: (model, task.epochs) for name, model in task.makers.items()}
        found = {
            name: np.mean([score(*model, task, *split) for split in task.splits], axis=0)
            for name, model in models.items()
        }
        lines[task.name] = {name: value for name, (value, _) in found.items()}
        lines[task.name]["fit, s"] = found["EpochClassifier"][1]
    if not lines:
        raise FileNotFoundError(f"{folder}: expected npz files of epochs, got none")
    print_markdown(pd.DataFrame.from_dict(lines, orient="index"))


def of_speed(folder, rounds):
    """Print a line for each set of epochs: seconds, their ratio, and how near both means are."""
    from pyriemann.estimation import Covariances
    from pyriemann.tangentspace import TangentSpace as PeerSpace

    sets = {
        "noise": np.random.default_rng(0).standard_normal((300, 64, 256)),
        "simulated": simulated(300, 64, 256),
    }
    for path in sorted(folder.glob("eegmmidb*.npz")):
        sets[path.stem] = movements(np.load(path))
    for name, X in sets.items():
        makers = [TangentSpace(n_threads=1), make_pipeline(Covariances("oas"), PeerSpace())]
        residuals = [np.linalg.norm(model.fit_transform(X).mean(axis=0)) for model in makers]
        seconds = np.empty((rounds, 2))
        for turn in range(rounds):
            for i, model in enumerate(makers):
                started = time.process_time()
                model.fit_transform(X)
                seconds[turn, i] = time.process_time() - started
        ours, peer = 1e3 * np.median(seconds, axis=0)
        ratio = np.median(seconds[:, 1] / seconds[:, 0])
        print(
            f"{name:26} {ours:7.1f} ms, pyRiemann {peer:7.1f} ms, ratio {ratio:.1f}; mean vectors "
            f"{residuals[0]:.1e}, {residuals[1]:.1e}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    if given.speed:
        of_speed(given.data, given.rounds)
    else:
        of_recordings(given.data)


if __name__ == "__main__":
    main()
