"""Draw the pictures of this folder: python docs/images/draw.py [--data DIR] [--only NAME ...].

DIR, by default ``../shared/data`` beside the repository, has ``mnist.npz``, ``uci_isolet.npz`` and
``eeg/eegmmidb_S001_imagined.npz``. A picture whose file is missing stays as it is. The charts of
the benchmarks are drawn by ``bench/charts.py``.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.signal import butter, sosfiltfilt
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import (
    GEM,
    LDG,
    FisherLDA,
    ReliableClassifier,
    SpatialFilters,
    TableClassifier,
    plotting,
)
from eigenfeat.demo.early import signals
from eigenfeat.rayleigh import QuadraticDiscriminant
from eigenfeat.tables import contributions

HERE = Path(__file__).resolve().parent
RED, BLUE, GRAY = "#b3261e", "#1f6fb2", "#4a5a68"


def filters(data):
    """Two pairs of digits of 28 x 28 pixels: mean images, and three directions of each pair."""
    with np.load(data / "mnist.npz") as mnist:
        X, y = mnist["X_train"] / 255, mnist["y_train"]
    pairs = [(3, 2), (4, 9)]
    some = np.isin(y, np.ravel(pairs))
    gem = GEM(n_directions=3, ridge=0.5, scale="none").fit(X[some], y[some])
    display = plotting.FiltersDisplay.from_estimator(gem, X, y, pairs=pairs, n_filters=3)
    display.figure_.set_size_inches(4.5, 2.9)  # with letters that can be read on a phone
    display.figure_.savefig(HERE / "filters.png", dpi=200)


def early_decision(data):
    """A simulated signal that is decided while it arrives."""
    rng = np.random.default_rng(1)
    X, y = signals(300, rng)
    series, _ = signals(200, rng)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(lda, reliability=0.95).fit(X, y)
    display = plotting.EarlyDecisionDisplay.from_estimator(model, series[3], times=[17, 34])
    display.figure_.savefig(HERE / "early_decision.png", dpi=180)


def embedding(data):
    """Spoken letters in two dimensions of PCA and LDG, and neighbours' accuracy by dimension."""
    with np.load(data / "uci_isolet.npz") as isolet:
        X, y = isolet["X"], isolet["y"]
        X_test, y_test = isolet["X_test"], isolet["y_test"]
    letters = np.unique(y)[[0, 2, 7, 8, 12, 17]]  # six letters, for two dimensions
    some, some_test = np.isin(y, letters), np.isin(y_test, letters)
    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    axes = figure.subplot_mosaic([["PCA", "LDG"], ["curve", "curve"]], height_ratios=[1.15, 1])
    reducers = {"PCA": PCA(2), "LDG": LDG(2, random_state=0)}
    colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#333333"]
    names = [chr(ord("A") + int(letter) - 1) for letter in letters]
    for name, reducer in reducers.items():
        reducer.fit(X[some], y[some])
        Z = reducer.transform(X_test[some_test])
        for letter, color, text in zip(letters, colors, names, strict=True):
            of = y_test[some_test] == letter
            axes[name].plot(*Z[of].T, ".", color=color, markersize=5)
            middle = np.median(Z[of], axis=0)
            axes[name].text(*middle, text, fontsize=15, weight="bold", color="black", ha="center")
        near = KNeighborsClassifier(3).fit(reducer.transform(X[some]), y[some])
        axes[name].set_title(f"{name}: {100 * near.score(Z, y_test[some_test]):.0f}% correct")
        axes[name].set(xticks=[], yticks=[])
    dimensions = [2, 4, 8, 12, 16, 25, 40]
    fitted = {"PCA": PCA(40).fit(X), "LDG": LDG(40, random_state=0).fit(X, y)}
    fisher = FisherLDA().fit(X, y)
    for name, color in (("LDG", RED), ("FisherLDA", BLUE), ("PCA", GRAY)):
        reducer = fisher if name == "FisherLDA" else fitted[name]
        Z, Z_test = reducer.transform(X), reducer.transform(X_test)
        tried = [m for m in dimensions if m <= Z.shape[1]]
        shares = [
            100 * KNeighborsClassifier(3).fit(Z[:, :m], y).score(Z_test[:, :m], y_test)
            for m in tried
        ]
        axes["curve"].plot(tried, shares, "o-", color=color, label=name, linewidth=2)
    axes["curve"].set(xlabel="dimensions, all 26 letters", ylabel="% correct, 3 neighbours")
    axes["curve"].legend(frameon=False, loc="lower right")
    figure.savefig(HERE / "embedding.png", dpi=130)


def lda(data):
    """Errors on digits with collinear columns, by the number of training samples."""
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X, X[:, 20:30], X.sum(axis=1, keepdims=True)])
    models = {
        "FisherLDA": (FisherLDA(), RED),
        "QuadraticDiscriminant": (QuadraticDiscriminant(), "#8a6d00"),
        "scikit-learn's LDA, shrinkage": (
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
            BLUE,
        ),
        "scikit-learn's LDA, svd": (LinearDiscriminantAnalysis(), GRAY),
    }
    sizes = [40, 60, 80, 120, 200, 400, 800]
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    ax = figure.subplots()
    for name, (model, color) in models.items():
        errors = []
        for size in sizes:
            some = []
            for seed in range(5):
                parts = train_test_split(
                    X, y, train_size=size, stratify=y, random_state=seed, shuffle=True
                )
                some.append(1 - model.fit(parts[0], parts[2]).score(parts[1], parts[3]))
            errors.append(100 * np.mean(some))
        ax.plot(sizes, errors, "o-", color=color, label=name, linewidth=2)
    ax.axvline(X.shape[1], color="#999999", linestyle=":")
    ax.text(X.shape[1] * 1.04, 55, "75 columns", color="#444444")
    ax.set(xscale="log", xlabel="training samples", ylabel="test error %", ylim=(0, 60))
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=10.5)
    figure.savefig(HERE / "lda.png", dpi=150)


def calibration(data):
    """A reliability diagram with a histogram of the confidences."""
    with np.load(data / "uci_satimage.npz") as file:
        X, y = file["X"], file["y"]
        X_test, y_test = file["X_test"], file["y_test"]
    rivals = {
        "TableClassifier": (TableClassifier(), RED),
        "logistic regression": (
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            BLUE,
        ),
    }
    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2.4, 1])
    edges = np.linspace(0.2, 1, 9)
    top.plot([0.2, 1], [0.2, 1], color="#888888", linestyle=":")
    for number, (name, (model, color)) in enumerate(rivals.items()):
        model.fit(X, y)
        confidence = model.predict_proba(X_test).max(axis=1)
        correct = model.predict(X_test) == y_test
        at = np.digitize(confidence, edges[1:-1])
        counts = np.bincount(at, minlength=8)
        full = counts >= 10
        mean = np.bincount(at, confidence, 8)[full] / counts[full]
        share = np.bincount(at, correct, 8)[full] / counts[full]
        error = 1.96 * np.sqrt(share * (1 - share) / counts[full])
        top.errorbar(mean, share, error, fmt="o-", color=color, label=name, capsize=3)
        middle = (edges[1:] + edges[:-1]) / 2
        bottom.bar(middle + 0.02 * (2 * number - 1), counts, 0.038, color=color)
    top.set(ylabel="share that is correct", ylim=(0.2, 1.03), title="Satimage, 2,000 test samples")
    top.legend(frameon=False, loc="upper left")
    bottom.set(xlabel="confidence of the prediction", ylabel="predictions", xlim=(0.2, 1.01))
    figure.savefig(HERE / "calibration.png", dpi=150)


# The 64 electrodes of the 10-10 system on a flat head: angle from the nose, and radius.
RINGS = {
    "Fpz": (0, 0.9), "Fp1": (-18, 0.9), "Fp2": (18, 0.9), "AF7": (-36, 0.9), "AF8": (36, 0.9),
    "F7": (-54, 0.9), "F8": (54, 0.9), "FT7": (-72, 0.9), "FT8": (72, 0.9), "T7": (-90, 0.9),
    "T8": (90, 0.9), "TP7": (-108, 0.9), "TP8": (108, 0.9), "P7": (-126, 0.9), "P8": (126, 0.9),
    "PO7": (-144, 0.9), "PO8": (144, 0.9), "O1": (-162, 0.9), "O2": (162, 0.9), "Oz": (180, 0.9),
    "T9": (-90, 1.12), "T10": (90, 1.12), "Iz": (180, 1.12),
}  # fmt: skip
LINES = {"AF": 0.66, "F": 0.45, "FC": 0.225, "C": 0.0, "CP": -0.225, "P": -0.45, "PO": -0.66}
SIDES = {"z": 0.0, "1": -0.2, "3": -0.42, "5": -0.65, "2": 0.2, "4": 0.42, "6": 0.65}


def positions(names):
    """Places of electrodes on a disc of radius 1."""
    out = []
    for name in names:
        if name in RINGS:
            angle, radius = np.deg2rad(RINGS[name][0]), RINGS[name][1]
            out.append((radius * np.sin(angle), radius * np.cos(angle)))
        else:
            line, side = LINES[name[:-1]], SIDES[name[-1]]
            out.append((side * np.sqrt(max(0.3, 1 - line**2)), line))
    return np.array(out)


def eeg_patterns(data):
    """Patterns of the filters of a recording: fists or feet, imagined."""
    with np.load(data / "eeg" / "eegmmidb_S001_imagined.npz") as file:
        epochs, y = file["X"] * file["scale"], file["y"]
        names, rate = [str(name).strip(".") for name in file["ch_names"]], float(file["sfreq"])
    some = y >= 3
    sos = butter(4, (7, 30), "bandpass", fs=rate, output="sos")
    epochs = sosfiltfilt(sos, epochs[some])[:, :, int(0.5 * rate) : int(2.5 * rate)]
    labels = np.where(y[some] == 3, "fists", "feet")
    found = SpatialFilters(4, normalize=True).fit(epochs, labels)
    places = positions(names)
    figure = Figure(figsize=(4.8, 5.2), layout="constrained")
    for ax, pattern, value in zip(
        figure.subplots(2, 2).flat, found.patterns_[:4], found.evals_[:4], strict=True
    ):
        pattern = pattern * np.sign(pattern[np.abs(pattern).argmax()])
        size = np.abs(pattern).max()
        ax.tricontourf(*places.T, pattern, levels=np.linspace(-size, size, 17), cmap="RdBu_r")
        ax.plot(*places.T, ".", color="black", markersize=2)
        ax.add_patch(mpl.patches.Circle((0, 0), 1, fill=False, color="black"))
        ax.plot([-0.12, 0, 0.12], [0.99, 1.13, 0.99], color="black")
        stronger = "feet" if value > 0.5 else "fists"
        ax.set(title=f"more power: {stronger}", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
        ax.title.set_fontsize(13)
        ax.set_aspect("equal")
        ax.axis("off")
    figure.savefig(HERE / "eeg_patterns.png", dpi=140)


def explain(data):
    """A sample of the wine data: contributions of views, effects and importance of columns."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = TableClassifier().fit(X_train, y_train)
    sample = X_test[:1]
    parts = contributions(model, sample, background=X_train)
    c = int(model.predict_proba(sample)[0].argmax())
    whole = np.log(model.predict_proba(sample)[0, c])
    effects = {}
    for name in X.columns:
        changed = sample.loc[sample.index.repeat(50)].reset_index(drop=True)
        changed[name] = X_train[name].to_numpy()[:50]
        effects[name] = whole - np.log(model.predict_proba(changed)[:, c]).mean()
    importance = permutation_importance(
        model, X_test, y_test, scoring="neg_log_loss", n_repeats=5, random_state=0
    ).importances_mean
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.subplot_mosaic([["views", "views"], ["sample", "all"]], height_ratios=[1, 1.5])
    ax = axes["views"]
    for number, color in enumerate([BLUE, RED, "#8a6d00"]):
        at = np.arange(len(parts.views)) + 0.26 * (number - 1)
        ax.bar(at, parts.by_view[0, :, number], 0.24, color=color, label=f"class {number}")
    ax.axhline(0, color="black", linewidth=1)
    ax.set_xticks(range(len(parts.views)), parts.views)
    top = np.abs(parts.by_view[0]).max()
    ax.set(ylabel="part of the logit", title="One sample, by view", ylim=(-top, 1.5 * top))
    ax.legend(frameon=False, ncols=3, loc="upper right", fontsize=10)
    order = np.argsort(importance)[-8:]
    names = [X.columns[j].split("/")[0].replace("_", " ") for j in order]
    axes["sample"].barh(names, [effects[X.columns[j]] for j in order], color=RED)
    axes["sample"].set(title=f"The sample: for class {c}", xlabel="log-probability lost")
    axes["all"].barh(names, importance[order], color=GRAY)
    axes["all"].set(title="All test samples", xlabel="log loss gained", yticklabels=[])
    figure.savefig(HERE / "explain.png", dpi=130)


PICTURES = {
    "filters": filters,
    "early_decision": early_decision,
    "embedding": embedding,
    "lda": lda,
    "calibration": calibration,
    "eeg_patterns": eeg_patterns,
    "explain": explain,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    parser.add_argument("--only", nargs="+", choices=list(PICTURES), default=list(PICTURES))
    options = parser.parse_args()
    style = {"font.size": 12, "axes.spines.top": False, "axes.spines.right": False}
    for name in options.only:
        try:
            # Displays of the package have a style of their own.
            with mpl.rc_context({} if name in ("filters", "early_decision") else style):
                PICTURES[name](options.data)
        except FileNotFoundError as missing:
            print(f"{missing.filename} is not there: {name}.png stays as it is")
