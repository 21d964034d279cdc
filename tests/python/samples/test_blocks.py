"""Rows in blocks: every kind goes through the same rows, and reduces them alike."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from eigenfeat import ClassMoments, open_rows
from eigenfeat.rayleigh import FisherLDA
from eigenfeat.samples import DaskBlocks
from eigenfeat.samples.blocks import ArrayBlocks, GeneratedBlocks, as_blocks
from eigenfeat.samples.out_of_core import class_moments


@pytest.fixture
def rows():
    random = np.random.RandomState(0)
    return random.randn(1000, 5), np.arange(1000) % 3, random.rand(1000)


def generated(rows, size):
    X, y, w = rows
    return [(X[i : i + size], y[i : i + size], w[i : i + size]) for i in range(0, len(X), size)]


@pytest.mark.parametrize("size", [1, 300, 5000])
def test_moments_of_blocks_are_those_of_all_rows(rows, size):
    X, y, w = rows
    whole = ClassMoments().update(X, y, w)
    for blocks in (
        ArrayBlocks(X, y, w, block_rows=size),
        ArrayBlocks(sp.csr_matrix(X), y, w, block_rows=size),
        GeneratedBlocks(generated(rows, size)),
    ):
        found = class_moments(blocks)
        for c in range(3):
            np.testing.assert_allclose(found.covariance(c), whole.covariance(c), atol=1e-13)
            np.testing.assert_allclose(found.mean(c), whole.mean(c), atol=1e-14)


def on_dask(X, y, w, kind=np.asarray):
    da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    chunks = da.from_array(X, chunks=((300, 0, 200, 500), 5))
    return DaskBlocks(chunks.map_blocks(kind, meta=kind(np.empty((0, 5)))), y, w)


@pytest.mark.parametrize(
    "form",
    [
        lambda X, y, w: ArrayBlocks(X, y, w, block_rows=300),
        lambda X, y, w: ArrayBlocks(sp.csr_matrix(X), y, w, block_rows=300),
        lambda X, y, w: ArrayBlocks(sp.csr_array(X), y, w, block_rows=7),
        lambda X, y, w: GeneratedBlocks(lambda: iter(generated((X, y, w), 300))),
        on_dask,
        lambda X, y, w: on_dask(X, y, w, sp.csr_array),
    ],
)
def test_rows_are_taken_by_number(rows, form):
    wanted = np.array([0, 5, 299, 300, 301, 999])
    block = form(*rows).take(wanted)
    dense = block.X.toarray() if sp.issparse(block.X) else block.X
    for found, known in zip((dense, block.y, block.weight), rows, strict=True):
        np.testing.assert_array_equal(found, known[wanted])


def test_sparse_targets_are_taken_by_number(rows):
    X, Y = rows[0], sp.random(1000, 4, 0.3, format="csr", random_state=0)
    blocks = GeneratedBlocks([(X[:600], Y[:600]), (X[600:], Y[600:])])
    found = blocks.take(np.array([3, 599, 600, 998]))
    np.testing.assert_array_equal(found.y.toarray(), Y[[3, 599, 600, 998]].toarray())


def test_a_function_is_called_anew_for_every_pass_and_an_iterator_ends(rows):
    again = as_blocks(lambda: iter(generated(rows, 100)))
    assert again.n_rows == again.n_rows == 1000
    once = as_blocks(iter(generated(rows, 100)))
    assert once.n_rows == 1000
    with pytest.raises(ValueError, match=r"X: expected blocks that can be read again"):
        once.reduce(len, lambda a, b: a + b)


def test_bad_blocks_are_refused(rows):
    X, y, _ = rows
    with pytest.raises(
        ValueError, match=r"y: expected 1000 values, one per sample, got .*\(999,\)"
    ):
        ArrayBlocks(X, y[1:])
    with pytest.raises(ValueError, match=r"block_rows: expected an integer >= 1, got 0"):
        ArrayBlocks(X, y, block_rows=0)
    with pytest.raises(ValueError, match=r"X: expected a matrix of samples"):
        ArrayBlocks(y)
    with pytest.raises(ValueError, match=r"expected blocks \(X, y\)"):
        GeneratedBlocks([(X, y, y, y)]).reduce(len, lambda a, b: a + b)
    with pytest.raises(ValueError, match=r"at least one block"):
        GeneratedBlocks([]).reduce(len, lambda a, b: a + b)
    with pytest.raises(ValueError, match=r"labels of the samples from 0 on"):
        class_moments(ArrayBlocks(X))


def test_bad_rows_are_named_among_all_rows(rows):
    X, y, w = rows
    w[888] = -1
    with pytest.raises(ValueError, match=r"sample_weight: .* in row 888"):
        class_moments(ArrayBlocks(X, y, w, block_rows=100))
    X[777, 2] = np.nan
    with pytest.raises(ValueError, match="in row 777, column 2"):
        class_moments(ArrayBlocks(X, y, block_rows=100))


def test_lists_and_frames_are_rows(rows):
    X, y, _ = rows
    for kind in (X.tolist(), pandas.DataFrame(X), pandas.DataFrame(X).astype("Float64")):
        block = next(iter(ArrayBlocks(kind, y.tolist(), block_rows=7)))
        np.testing.assert_array_equal(block.X, X[:7])
        np.testing.assert_array_equal(block.y, y[:7])
    gaps = pandas.DataFrame(X).astype("Float64").mask(X > 1)
    block = next(iter(GeneratedBlocks([(gaps, y)])))
    np.testing.assert_array_equal(block.X, np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match=r"X: expected numbers, got text in column 'kind' \('a'"):
        ArrayBlocks(gaps.assign(kind="a"), y)
    with pytest.raises(ValueError, match=rf"text in column 'kind' \('a' in row {len(y)}\)"):
        list(GeneratedBlocks([(gaps, y), (gaps.assign(kind="a"), y)]))


def test_memory_maps_at_any_byte_are_not_copied(rows, tmp_path):
    X, y, _ = rows
    (tmp_path / "rows").write_bytes(b"\0" + X.tobytes())
    mapped = np.memmap(tmp_path / "rows", X.dtype, mode="r", offset=1, shape=X.shape)
    assert not mapped.flags.aligned
    blocks = ArrayBlocks(mapped, y, block_rows=300)
    assert all(np.shares_memory(block.X, mapped) for block in blocks)
    assert class_moments(blocks) == class_moments(ArrayBlocks(X, y, block_rows=300))
    model = FisherLDA().fit(blocks)
    np.testing.assert_array_equal(np.concatenate([*model.predict(blocks)]), model.predict(X))


def test_columns_of_data_frames_keep_their_names(rows):
    frame, y = pandas.DataFrame(rows[0], columns=list("abcde")), rows[1]
    halves = [(frame[:500], y[:500]), (frame[500:], y[500:])]
    model = FisherLDA().fit(frame, y)
    for blocks in (GeneratedBlocks(halves), ArrayBlocks(frame, y)):
        found = FisherLDA().fit(blocks)
        assert found.feature_names_in_.tolist() == list("abcde")
        assert found.score(blocks) == model.score(frame, y)
    other = frame[list("abced")]
    mixed = GeneratedBlocks([halves[0], (other[500:], y[500:])])
    for use in (FisherLDA().fit, class_moments, model.score, lambda X: list(model.predict(X))):
        with pytest.raises(ValueError, match="X: expected 'd' as column 3, got 'e'"):
            use(mixed)
    for blocks in (GeneratedBlocks([(other, y)]), ArrayBlocks(other, y)):
        with pytest.raises(ValueError, match="X: expected 'd' as column 3, got 'e'"):
            model.score(blocks)


def test_moments_of_blocks_have_the_names_of_columns(rows, tmp_path):
    X, y, _ = rows
    frame = pandas.DataFrame(X, columns=list("abcde"))
    frame.assign(kind=y).to_csv(tmp_path / "rows.csv", index=False)
    for blocks in (
        GeneratedBlocks([(frame[:500], y[:500]), (frame[500:], y[500:])]),
        ArrayBlocks(frame, y),
        open_rows(tmp_path / "rows.csv", "kind"),
    ):
        assert class_moments(blocks).feature_names_in_.tolist() == list("abcde")
    assert not hasattr(class_moments(ArrayBlocks(X, y)), "feature_names_in_")


def test_no_more_than_one_generated_block_is_alive():
    alive = []

    class Watched(np.ndarray):
        def __del__(self):
            alive.remove(1)

    def blocks():
        for _ in range(5):
            assert not alive
            rows = np.zeros((10, 2)).view(Watched)
            alive.append(1)
            yield (rows, np.arange(10))
            del rows

    assert GeneratedBlocks(blocks).reduce(len, lambda a, b: a + b) == 50
