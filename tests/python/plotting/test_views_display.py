"""Weights of views as bars."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.plotting import ViewsDisplay

pytest.importorskip("matplotlib")


def test_views_are_bars_with_their_losses(tmp_path):
    model = LinearDiscriminantAnalysis().fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    with pytest.raises(ValueError, match="estimator: expected one with views, got Linear"):
        ViewsDisplay.from_estimator(model)
    model.views_ = [
        SimpleNamespace(name="columns", weight=0.3, log_loss=0.5),
        SimpleNamespace(name="gem", weight=0.7, log_loss=0.25),
        SimpleNamespace(name="kernel", weight=0.0, log_loss=np.nan),
    ]
    display = ViewsDisplay.from_estimator(model, color="black")
    display.figure_.savefig(tmp_path / "picture.png")
    assert [bar.get_width() for bar in display.bars_] == [0.3, 0.7, 0.0]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [
        "columns",
        "gem",
        "kernel",
    ]
    told = [text.get_text() for text in display.ax_.texts]
    assert told == [" 0.30, log loss 0.500", " 0.70, log loss 0.250", " not used"]
    ends = [text.get_window_extent().x1 for text in display.ax_.texts]
    assert max(ends) <= display.figure_.bbox.x1
