"""Files that were changed on purpose, with every checksum as it should be."""

from __future__ import annotations

import numpy as np
import pytest
from saved_files import change_array, members, refusal, saved

FORGED = [
    np.array([2**63 - 1]),
    np.array([-1]),
    np.array([3]),
    np.array([[0]]),
]


@pytest.mark.parametrize("name", ["LocalQDA", "ClassNearest", "ReliableClassifier, local"])
@pytest.mark.parametrize("code", FORGED, ids=str)
def test_class_codes_out_of_range_are_refused_before_they_are_used(tmp_path, name, code):
    path = saved(tmp_path, name)
    (member,) = (one[:-4] for one in members(path) if "codes" in one)
    codes = np.concatenate([np.arange(89) % 3, code]) if code.ndim == 1 else np.zeros((90, 1), int)
    change_array(path, member, codes)
    assert "LocalQDA codes does not fit" in refusal(path)
