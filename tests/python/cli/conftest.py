"""Files of rows that several commands read."""

import numpy as np
import pytest
from table_files import csv_text


@pytest.fixture
def insects(tmp_path, rng, monkeypatch):
    """Rows of three classes in train.csv (300) and test.csv (200) of the current folder."""
    monkeypatch.chdir(tmp_path)
    y = rng.integers(0, 3, 500)
    X = rng.standard_normal((500, 4)) * (1 + y[:, None]) + y[:, None]
    kinds = np.array(["ant", "bee", "moth"])[y]
    (tmp_path / "train.csv").write_text(csv_text(X[:300], kinds[:300]))
    (tmp_path / "test.csv").write_text(csv_text(X[300:], kinds[300:]))
    return X, kinds
