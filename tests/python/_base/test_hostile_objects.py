"""Well-formed files of nonsense: refused where their parts do not fit, and never a crash."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from fitted_models import FRAME, MODELS, outputs
from saved_files import change_array, change_meta, refusal, saved

import eigenfeat as ef
from eigenfeat._base.files import persist

EVERY_ARRAY = "EIGENFEAT_FUZZ" in os.environ

NODES = [
    {"object": "os.system", "id": 0, "state": {}},
    {"object": "SVC", "id": 0, "state": {}},
    {"object": "builtins.eval", "id": 0, "state": {"x": 1}},
    {"object": ["LDG"], "id": 0, "state": {}},
    {"object": "LDG", "id": "0", "state": {}},
    {"object": "LDG", "id": 0, "state": []},
    {"object": "LDG", "id": 0},
    {"object": "LDG", "id": 0, "state": {}, "more": 1},
    {"object": "LDG", "id": 0, "state": {"fit": 1}},
    {"object": "LDG", "id": 0, "state": {"__class__": 1}},
    {"object": "LDG", "id": 0, "state": {"__dict__": {"dict": []}}},
    {"object": "LDG", "id": 0, "state": {"_hidden": 1}},
    {"object": "LDG", "id": 0, "state": {"components_": 1}},
    {
        "object": "LDG",
        "id": 0,
        "state": {"classes_": {"labels": "<U1", "shape": [0], "values": []}},
    },
    {"object": "ReliableClassifier", "id": 0, "state": {}},
    {"object": "PCA", "id": 0, "state": {"version": "1", "attributes": {"dict": [["fit", 1]]}}},
    {"object": "PCA", "id": 0, "state": {"version": 1, "attributes": {"dict": []}}},
    {"same": 0},
    {"same": [0]},
    {"array": "missing"},
    {"array": 3},
    {"float": "1e5"},
    {"float": ["nan"]},
    {"bytes": 3},
    {"bytes": "\u1234"},
    {"tuple": 3},
    {"dict": [[1]]},
    {"dict": [[[], 1]]},
    {"dict": [["a", 1], ["a", 2]]},
    {"scalar": "|O", "hex": "00" * 8},
    {"scalar": "<f8", "hex": "00"},
    {"scalar": "<f8", "hex": ""},
    {"scalar": "<M8[s]", "hex": "00" * 8},
    {"dtype": "(1000000000,)f8"},
    {"dtype": "i4,i4"},
    {"labels": "<U999999999", "shape": [1], "values": ["a"]},
    {"labels": "<U1", "shape": [2], "values": ["a"]},
    {"labels": "<U1", "shape": [-1], "values": ["a"]},
    {"labels": "<U1", "shape": [2**40, 0], "values": ["a"]},
    {"labels": "<U1", "shape": [1], "values": ["abc"]},
    {"labels": "<U1", "shape": [1], "values": [1]},
    {"labels": "|O", "shape": [1], "values": [[]]},
    {"labels": "<f8", "shape": [1], "values": [1.5]},
    {"labels": "|V8", "shape": [1], "values": ["a"]},
    {"sparse": "coo_matrix", "shape": [1, 1], "data": 1, "indices": 1, "indptr": 1},
    {"sparse": "csr_matrix", "shape": [1, 1], "data": 1, "indices": 1, "indptr": 1},
    {"array": "a", "float": "nan"},
    {"unknown": 1},
    {},
    [1],
    3,
    None,
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: str(node)[:60])
def test_objects_that_are_none(tmp_path, node):
    path = tmp_path / "model"
    persist.write(path, "object", {"object": node}, [])
    assert refusal(path).startswith(f"{path}: ")
    inside = {"object": "LDG", "id": 9, "state": {"gamma": node}}
    persist.write(path, "object", {"object": inside}, [])
    assert refusal(path) is not None or isinstance(node, (int, list, type(None)))


def test_inner_objects_are_no_files(tmp_path):
    for name, state in (("Lazy", {"value": 1}), ("PatternCache", {}), ("BoxSet", {})):
        tree = {"object": name, "id": 0, "state": state}
        persist.write(tmp_path / "model", "object", {"object": tree}, [])
        assert "it holds no object of this package" in refusal(tmp_path / "model")


@pytest.mark.parametrize(
    "node",
    [
        *([], {}, 1.5, "ab", {"tuple": []}, {"bytes": ""}),
        {"labels": "<U9999", "shape": [1], "values": ["a"]},
        {"same": 0},
    ],
    ids=str,
)
def test_memory_is_in_proportion_to_the_header(tmp_path, node):
    path = tmp_path / "model"
    many = [node] * (2**16 // len(str(node)))
    tree = {"object": "LDG", "id": 1, "state": {"gamma": many}}
    persist.write(path, "object", {"object": tree}, [])
    refusal(path)
    tracemalloc.start()
    refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * path.stat().st_size


def test_wide_labels_become_narrow_where_they_are_many(tmp_path):
    for count, width, found in ((3, 200, 200), (300, 20, 20), (300, 2000, 32), (2, 10**8, 32)):
        labels = np.arange(2 * count) % count
        model = ef.FisherLDA(n_components=1)
        model.fit(np.arange(count * 2.0)[:, None], labels.astype("U3"))
        ef.save(model, tmp_path / "model")

        def wider(meta, width=width):
            state = meta["object"]["state"]
            state["classes_"]["labels"] = f"<U{width}"
            table = dict(state["moments_"]["state"]["meta"]["dict"])["labels"]["dict"]
            next(pair for pair in table if pair[0] == "dtype")[1] = f"<U{width}"

        change_meta(tmp_path / "model", wider)
        loaded = ef.load(tmp_path / "model")
        assert loaded.classes_.dtype == loaded.moments_.classes_.dtype == f"<U{found}"
        assert loaded.classes_.tolist() == model.classes_.tolist()


def test_depth_is_bounded(tmp_path):
    path, deep = tmp_path / "model", 1
    for _ in range(70):
        deep = {"tuple": [deep]}
    tree = {"object": "LDG", "id": 0, "state": {"gamma": deep}}
    persist.write(path, "object", {"object": tree}, [])
    assert "too deep" in refusal(path)


def test_sparse_matrices_are_checked(tmp_path):
    path = tmp_path / "model"
    good = {
        "data": np.ones(3),
        "indices": np.array([0, 1, 1], dtype=np.int32),
        "indptr": np.array([0, 2, 3], dtype=np.int32),
    }

    def refused(shape=(2, 2), **changes):
        arrays = good | changes
        parts = {name: {"array": name} for name in arrays}
        node = {"sparse": "csr_matrix", "shape": list(shape)} | parts
        tree = {"object": "LDG", "id": 0, "state": {"gamma": node}}
        persist.write(path, "object", {"object": tree}, arrays.items())
        return refusal(path)

    assert refused() is None
    for indices in ([0, 5, 1], [0, -1, 1], [0, 1], [0.0, 1.0, 1.0]):
        assert refused(indices=np.array(indices)) is not None
    for indptr in ([0, 2], [0, 2, 4], [1, 2, 3], [0, 9, 3], [0, -2, 3]):
        assert refused(indptr=np.array(indptr)) is not None
    for shape in ((2, 1), (3, 2), (-2, 2), (2**40, 2), (2,), (2, 2, 2)):
        assert refused(shape) is not None


def shorter(array):
    return array[..., :-1]


def negative(array):
    return -1 - array


def large(array):
    return array + 10**6


def not_a_number(array):
    array.reshape(-1)[0] = np.nan
    return array


def as_integers(array):
    return array.astype("i8")


def changed(path, name, change):
    """Change one array of a file, checksums and all."""
    with np.load(path) as arrays:
        array = arrays[name]
    change_array(path, name, change(array.copy()))


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("pencils", "contrasts")])
def test_arrays_that_do_not_fit_never_crash(tmp_path, name):
    """Well-formed files of nonsense are refused, or their predictions are numbers or an error."""
    path = saved(tmp_path, name)
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = {array: file[array] for array in file.files if array != "header.json"}
    rng = np.random.default_rng(5)
    for array in rng.permutation(sorted(arrays))[: None if EVERY_ARRAY else 6]:
        real, sized = arrays[array].dtype in ("<f8", "<f4"), arrays[array].size > 0
        flags = arrays[array].dtype == bool
        for change in (shorter, negative, large, *([not_a_number] if real and sized else [])):
            if not arrays[array].shape or (flags and change is not shorter):
                continue
            path.write_bytes(whole)
            changed(path, array, change)
            use_if_loaded(path)


def use_if_loaded(path):
    """Whatever loads predicts something, or says in Python why not."""
    text = refusal(path)
    if text is not None:
        assert text.startswith(f"{path}: ")
        return
    with np.errstate(all="ignore"), suppress(ValueError, IndexError, np.linalg.LinAlgError):
        outputs(ef.load(path))


@pytest.mark.parametrize("name", ["MultinomialLogit", "GEM", "LDG", "LocalQDA", "ECTS"])
def test_shapes_and_numbers_are_checked(tmp_path, name):
    path = saved(tmp_path, name)
    whole = path.read_bytes()
    array = {
        "MultinomialLogit": "multinomiallogit_coef",
        "GEM": "gem_solution_value_directions",
        "LDG": "ldg_components",
        "LocalQDA": "localqda_rows",
        "ECTS": "ects_columns",
    }[name]
    for change in (shorter, not_a_number, as_integers, np.atleast_3d):
        path.write_bytes(whole)
        changed(path, array, change)
        assert "does not fit" in refusal(path)


def test_files_of_garbage_parameters_end_in_clear_errors(tmp_path):
    path = saved(tmp_path, "GEM")

    def change(meta):
        meta["object"]["state"]["expansion"] = "planet"

    change_meta(path, change)
    with pytest.raises(ValueError, match="expansion: expected"):
        ef.load(path).transform(FRAME)
