"""A minute's worth of use of an installed wheel, with nothing but its own requirements.

Usage: python .ci/smoke.py [--alone], which also demands that LAPACK lies in the wheel.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

import eigenfeat
from eigenfeat import TableClassifier, generalized_eigh
from eigenfeat.early import ReliableClassifier
from eigenfeat.io import to_c
from eigenfeat.ldg import LDG


def main():
    if "--alone" in sys.argv and importlib.util.find_spec("scipy_openblas32") is not None:
        sys.exit("scipy-openblas32 is installed: the wheel is not tried alone")
    eigenfeat.show_versions()

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=400, random_state=0)
    model = TableClassifier().fit(X, y)
    error = 1 - model.score(X_test, y_test)
    assert error < 0.05, error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.efm"
        eigenfeat.save(model, path)
        again = eigenfeat.load(path)
    np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    one, two = (TableClassifier(n_threads=n).fit(X[:150], y[:150]) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X_test), two.predict_proba(X_test))

    assert LDG(n_components=5, gamma=0.5, n_neighbors=5).fit(X, y).transform(X_test).shape[1] == 5
    A = np.cov(X[y == 0], rowvar=False)
    found = generalized_eigh(A[None], np.eye(64)[None], n_vectors=1).eigenvalues[0, 0]
    np.testing.assert_allclose(found, np.linalg.eigvalsh(A)[-1], rtol=1e-8)

    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    early = ReliableClassifier(lda, correct=False).fit(X, y)
    assert early.predict_early(X_test).time.mean() < 64
    assert "eigenfeat_push" in to_c(early)
    print(f"test error {error:.3f}: passed")


if __name__ == "__main__":
    main()
