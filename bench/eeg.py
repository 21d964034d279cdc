"""EEG and EMG: accuracy of `EpochClassifier` and its views beside MNE and pyRiemann.

    python bench/eeg.py [--data ../shared/data/eeg]
    python bench/eeg.py --simulated [--channels 128] [--epochs 320] [--times 256] [--seeds 3]
    python bench/eeg.py --motions [FOLDER]
    OPENBLAS_NUM_THREADS=1 python bench/eeg.py --speed [--data FOLDER] [--rounds 7]

Recordings (--data holds npz files of epochs): imagined movements of eegmmidb (7 to 30 Hz, 0.5 to
2.5 s after the cue, twice five random folds), SSVEP (within a recording in five folds, and a new
person), EMG of gestures (from 20 Hz on, trained on the first session, tested on the second), and
P300 (five folds, area under the ROC curve). For SSVEP `EpochClassifier` gets the frequencies, the
others get bands of 2 Hz around them. `EpochClassifier` has its defaults everywhere. The last column
has the seconds of its fit. Packages that are not installed are left out. `eeg.csv` has the figures.

Simulated: rhythms of sources in a mixing that decays with distance, about one of which each class
has more power; noise of many weaker sources. Half of the epochs are trained on. MNE diagonalises
all four covariances jointly (Pham's algorithm) and orders by mutual information; `SpatialFilters`
solves one problem for each class, or for each two. Log-powers go to LDA with shrinkage.

With `--motions` the recordings are BasicMotions (J. Clements, UEA archive), 6 channels of a watch's
accelerometer and gyroscope, 4 activities, 40 epochs of 100 samples to train on and 40 to test.
The last line is of early decisions with all channels. aeon brings its files; FOLDER is where they
are, by default in the installed aeon.

With `--speed`, `TangentSpace` and pyRiemann's covariances and tangent space take turns, on one
thread and with the same shrinkage (OAS): white noise, the simulated sources, and recorded epochs
of 64 channels. Lines have the median of the ratios of processor seconds, and the norms of the mean
tangent vectors, which are 0 at the exact mean.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.signal import butter, sosfiltfilt
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from eigenfeat import EpochClassifier, SpatialFilters, TangentSpace
from eigenfeat.early import MinimumCostClassifier

DATA = Path(__file__).resolve().parents[1].parent / "shared/data/eeg"
STIMULI = (13, 17, 21)  # Hz, of the SSVEP recordings


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
    """Accuracy on the test part, out of folds of random epochs of both parts, and early."""
    (X, y), (Z, z) = motions(folder)
    makers = {f"SpatialFilters({m})": SpatialFilters(m) for m in (1, 2, 6)}
    makers["SpatialFilters(2, pairs='one_vs_rest')"] = SpatialFilters(2, pairs="one_vs_rest")
    if find_spec("mne"):
        import mne

        mne.set_log_level("ERROR")
        makers |= {f"MNE CSP({m})": mne.decoding.CSP(n_components=m) for m in (4, 6)}
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0)
    for name, filters in makers.items():
        model = make_pipeline(filters, lda())
        started = time.perf_counter()
        model.fit(X, y)
        took = 1e3 * (time.perf_counter() - started)
        inside = cross_val_score(model, np.concatenate([X, Z]), np.concatenate([y, z]), cv=folds)
        print(f"{name:38} {took:6.1f} ms   {model.score(Z, z):.3f}, folds {inside.mean():.3f}")
    early = MinimumCostClassifier().fit(X, y).predict_early(Z)
    right, left = np.mean(early.label == z), 1 - early.time.mean() / Z.shape[2]
    harmonic = 2 * right * left / (right + left)
    print(f"early decisions: accuracy {right:.3f}, harmonic mean with 1 - earliness {harmonic:.3f}")


def measure(make, train, test):
    """Seconds of fit and transform, and accuracy of LDA behind."""
    started = time.perf_counter()
    model = make.fit(*train)
    fitted = time.perf_counter() - started
    behind = lda().fit(model.transform(train[0]), train[1])
    return fitted, float(np.mean(behind.predict(model.transform(test[0])) == test[1]))


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
        rate = float(data["sfreq"])
        X = filtered(data["X"] * data["scale"], (7, 30), "bandpass", rate)
        X = X[:, :, int(0.5 * rate) : int(2.5 * rate)]
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
    """Print a line for each task, a table for each set of methods."""
    header = []
    for task in recordings(folder):
        if list(task.makers) != header:
            header = list(task.makers)
            print("\n| |", " | ".join(["EpochClassifier", *header, "s"]), "|")
            print("|---|" + "---:|" * (len(header) + 2))
        results = [score(task.ours, task.X, task, *split) for split in task.splits]
        value, seconds = np.mean(results, axis=0)
        cells = [f"{value:.3f}"]
        for maker in task.makers.values():
            results = [score(maker, task.epochs, task, *split) for split in task.splits]
            cells.append(f"{np.mean(results, axis=0)[0]:.3f}")
        print(f"| {task.name} |", " | ".join([*cells, f"{seconds:.1f}"]), "|", flush=True)
    if not header:
        raise FileNotFoundError(f"{folder}: expected npz files of epochs, got none")


def of_speed(folder, rounds):
    """Print a line for each set of epochs: seconds, their ratio, and how near both means are."""
    from pyriemann.estimation import Covariances
    from pyriemann.tangentspace import TangentSpace as PeerSpace

    sets = {
        "noise": np.random.default_rng(0).standard_normal((300, 64, 256)),
        "simulated": recording(0, 300, 64, 256)[0],
    }
    for path in sorted(folder.glob("eegmmidb*.npz")):
        data = np.load(path)
        rate = float(data["sfreq"])
        X = filtered(data["X"] * data["scale"], (7, 30), "bandpass", rate)
        sets[path.stem] = np.ascontiguousarray(X[:, :, int(0.5 * rate) : int(2.5 * rate)])
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
    """Print a line for each method: medians over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("channels", 128), ("epochs", 320), ("times", 256), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--motions", nargs="?", type=Path, const=Path(), metavar="FOLDER")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    if given.speed:
        of_speed(given.data, given.rounds)
        return
    if given.motions is not None:
        of_motions(None if given.motions == Path() else given.motions)
        return
    if not given.simulated:
        of_recordings(given.data)
        return
    makers = {
        "SpatialFilters(2)": lambda rank: SpatialFilters(2),
        "SpatialFilters(8)": lambda rank: SpatialFilters(8),
        "SpatialFilters(2, pairs='one_vs_rest')": lambda rank: SpatialFilters(
            2, pairs="one_vs_rest"
        ),
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
        print(f"{name:38} {np.median(seconds):8.3f} s   accuracy {accuracy.mean():.3f}")


if __name__ == "__main__":
    main()
