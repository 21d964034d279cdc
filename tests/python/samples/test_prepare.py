"""Fits that need all samples at once: samples are read from files, or refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from every_estimator import ESTIMATORS, TAKE_SPARSE, K, X, Y, outputs, rows_for, seeded
from table_files import write_rows

from eigenfeat import open_rows
from eigenfeat.samples import ArrayBlocks
from eigenfeat.samples import blocks as sample_blocks

KINDS = ("LDG", "SparseLDG", "DiscriminativeGaussian", "KernelLDG", "TransferLDG", "LocalFisher")
KINDS += ("ITML", "RandomizedGEM", "MulticlassSVM", "MaxMarginShift", "MaxMarginPCA", "LocalQDA")
IN_MEMORY = [name for name in ESTIMATORS if name.partition(",")[0] in KINDS]
UNWEIGHTED = ["LDG", "KernelLDG", "TransferLDG", "PCAFisher", "LocalFisher", "LocalQDA"]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LABELS = np.array(["low", "middle", "high"])[Y]


def same(one, other):
    """Whether outputs are equal bit for bit."""
    assert one.keys() == other.keys()
    for method, values in one.items():
        np.testing.assert_array_equal(values, other[method], strict=True)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_fit_to_a_file_is_the_fit_to_its_rows(name, tmp_path):
    frame = pd.DataFrame(rows_for(name, X), columns=["x0", "x1", "x2", "x3"])
    path, options = write_rows(tmp_path, "rows.csv", frame.to_numpy(), LABELS)
    model, more = seeded(name)
    expected = outputs(seeded(name)[0].fit(frame, LABELS, **more), frame)
    rows = open_rows(path, block_rows=25, **options)
    same(outputs(model.fit(rows, **more), frame), expected)
    for method, values in expected.items() if name != "TransferLDG" else ():
        parts = list(getattr(model, method)(rows))
        assert [len(part) for part in parts] == [25, 25, 10]
        if values.dtype.kind == "f":
            np.testing.assert_allclose(np.concatenate(parts), values, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(np.concatenate(parts), values)


@pytest.mark.parametrize("name", [name for name in IN_MEMORY if name in TAKE_SPARSE])
def test_a_fit_to_a_sparse_file_is_the_fit_to_its_rows(name, tmp_path):
    rows = sp.csr_array(np.where(X > 0, X, 0.0))
    path, options = write_rows(tmp_path, "rows.svm", rows.toarray(), Y)
    found, expected = seeded(name)[0].fit(open_rows(path, **options)), seeded(name)[0].fit(rows, Y)
    same(outputs(found, X), outputs(expected, X))


@pytest.mark.parametrize("name", IN_MEMORY)
def test_samples_that_are_not_in_memory_are_refused(name, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    model, more = seeded(name)
    rows = rows_for(name, X)
    path, options = write_rows(tmp_path, "rows.csv", rows, LABELS)
    large = open_rows(path, **options)
    large.memory = 100
    mapped = np.memmap(tmp_path / "map", dtype=float, mode="w+", shape=rows.shape)
    monkeypatch.setattr(sample_blocks, "physical_memory", lambda: 100)
    for given, labels, got in (
        (da.from_array(rows, chunks=(20, -1)), Y, "Array"),
        (ArrayBlocks(rows, Y), None, "ArrayBlocks"),
        (iter([(rows, Y)]), None, "list_iterator"),
        (large, None, "FileRows"),
        (mapped, Y, "memmap"),
    ):
        message = f"^X: expected samples that fit into memory, got {got}, which is read in blocks;"
        with pytest.raises(ValueError, match=message):
            model.fit(given, labels, **more)
    assert not [name for name in vars(model) if name.endswith("_")]


class Held(ArrayBlocks):
    """Blocks that may be read as one array."""

    def in_memory(self, *, sparse=False):
        return next(iter(self))


@pytest.mark.parametrize("name", UNWEIGHTED)
def test_blocks_with_weights_need_a_fit_with_weights(name):
    weight = np.ones(len(Y))
    for kind in (ArrayBlocks, Held) if name == "PCAFisher" else (Held,):
        message = rf"^sample_weight: expected no weights for {name}, got blocks with weights$"
        with pytest.raises(ValueError, match=message):
            ESTIMATORS[name]().fit(kind(X, Y, weight))


@pytest.mark.parametrize("name", ["MulticlassSVM", "RandomizedGEM", "MaxMarginShift"])
def test_weights_of_blocks_in_memory_count(name):
    """Samples of weight 0 move no other samples, but an extractor is fitted to them."""
    weight = np.arange(len(Y)) % 3 / 2.0
    labels = np.where(weight > 0, Y, K)  # without a class of their own
    found = ESTIMATORS[name]().fit(Held(X, labels, weight))
    same(outputs(found, X), outputs(ESTIMATORS[name]().fit(X, labels, weight), X))
    assert K not in getattr(found, "svm_", found).classes_


@pytest.mark.parametrize(
    "name", ["TransferLDG", "LocalQDA", "PCAFisher", "LocalFisher", "TableRegressor"]
)
def test_estimators_of_dense_samples_refuse_sparse_samples(name):
    model, rows = ESTIMATORS[name](), sp.csr_array(X)
    fitted = ESTIMATORS[name]().fit(X, Y)
    method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    for call in (lambda: model.fit(rows, Y), lambda: method(rows)):
        with pytest.raises(TypeError, match=r"^X: expected dense samples, got sparse samples$"):
            call()
