"""Series of one entry: nothing comes before the end, so nothing is to be corrected."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import ReliableClassifier


@pytest.mark.parametrize("how", ["auto", "sampled"])
def test_no_warning_about_folds(how):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 1)) + 2 * y[:, None]
    model = ReliableClassifier(LinearDiscriminantAnalysis(), rule=how).fit(X, y)
    assert model.predict_early(X).label.shape == (60,)
    assert model.score(X, y) > 0.6
