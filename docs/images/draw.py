"""Draw the pictures of this folder: python docs/images/draw.py [MNIST.npz].

The file of MNIST has arrays ``X_train`` (60000, 784) and ``y_train``. By default it is looked
for beside the repository; without it, the picture of the filters is left as it is.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import GEM, plotting
from eigenfeat.demo.early import signals
from eigenfeat.incomplete import ReliableClassifier

HERE = Path(__file__).resolve().parent


def filters(file):
    """Two pairs of digits of 28 x 28 pixels: mean images, and three directions of each pair."""
    with np.load(file) as mnist:
        X, y = mnist["X_train"] / 255, mnist["y_train"]
    pairs = [(3, 2), (4, 9)]
    some = np.isin(y, np.ravel(pairs))
    gem = GEM(n_directions=3, ridge=0.5, scale="none").fit(X[some], y[some])
    display = plotting.FiltersDisplay.from_estimator(gem, X, y, pairs=pairs, n_filters=3)
    display.figure_.set_size_inches(4.5, 2.9)  # with letters that can be read on a phone
    display.figure_.savefig(HERE / "filters.png", dpi=200)


def early_decision():
    """A simulated signal that is decided while it arrives."""
    rng = np.random.default_rng(1)
    X, y = signals(300, rng)
    series, _ = signals(200, rng)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(lda, reliability=0.95).fit(X, y)
    display = plotting.EarlyDecisionDisplay.from_estimator(model, series[3], times=[17, 34])
    display.figure_.savefig(HERE / "early_decision.png", dpi=180)


if __name__ == "__main__":
    mnist = Path(*sys.argv[1:]) if len(sys.argv) > 1 else HERE.parents[2] / "shared/data/mnist.npz"
    if mnist.is_file():
        filters(mnist)
    else:
        print(f"{mnist} is not there: filters.png stays as it is")
    early_decision()
