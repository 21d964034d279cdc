"""Model files that are damaged at random, or forged with valid checksums.

The variable `EIGENFEAT_FUZZ` sets the number of damaged files, `EIGENFEAT_FUZZ_SEED` the seed.
"""

import io
import json
import os
import time
import tracemalloc
import warnings
from contextlib import suppress
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from fitted_models import FRAME, MODELS, outputs
from saved_files import (
    array_at,
    change_array,
    change_schema,
    change_value,
    contents_of,
    described,
    inside,
    listed,
    members,
    npy,
    refusal,
    rewrite,
    saved,
    value,
)
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, SplineTransformer
from sklearn.svm import SVC
from table_files import damaged

import eigenfeat as ef
from eigenfeat.io.saving import SCHEMA

CASES = int(os.environ.get("EIGENFEAT_FUZZ", 280))
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))
FUZZED = (
    *("GEM", "GEMClassifier, deep", "GEMEnsemble", "MulticlassSVM, sparse"),
    *("ReliableClassifier, LDA", "KernelLDG", "moments"),
)


def same_outputs(path, expected):
    found = outputs(ef.load(path))
    return all(np.array_equal(found[name], part) for name, part in expected.items())


# ---- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUZZED)
def test_damaged_files_are_refused_or_predict_equally(tmp_path, name):
    path = saved(tmp_path, name)
    whole, rng = path.read_bytes(), np.random.default_rng([SEED, FUZZED.index(name)])
    expected, unclear = outputs(ef.load(path)), []
    for _ in range(CASES // len(FUZZED)):
        path.write_bytes(damaged(whole, rng))
        text = refusal(path)
        if text is None:
            assert same_outputs(path, expected)
        elif not text.startswith(f"{path}: ") or "\n" in text or len(text) > 500:
            unclear.append(text)
    assert unclear == []


# ---- archives ------------------------------------------------------------------------------------


def test_a_member_belongs_to_one_object(tmp_path):
    path = saved(tmp_path, "LDG")
    member, _ = array_at(path, "mean_")
    many = [stored(member, 10**6 + i) for i in range(1000)]
    change_value(path, "gamma", to=listed(many))
    assert "belongs to two objects" in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**6,
        b"1" * 10**6,
        b"\xff\xfe",
        b"null",
        b"",
        b'{"__loader__": "ObjectNode"}',
        b'{"protocol": 2}',
    ],
    ids=lambda text: text[:8].decode("latin-1"),
)
def test_invalid_schemas_are_refused(tmp_path, text):
    path = saved(tmp_path, "LDG")
    rewrite(path, members(path) | {SCHEMA: text})
    started = time.perf_counter()
    assert refusal(path).startswith(f"{path}: ")
    assert time.perf_counter() - started < 5


def stored(member, number, kind="numpy.ndarray"):
    return described(kind, "NdArrayNode", type="numpy", file=member, __id__=number)


def peak_of_refusal(path):
    """Text of the error, and the peak memory in bytes."""
    tracemalloc.start()
    text = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return text, peak


def test_members_are_checked_by_node_and_not_by_suffix(tmp_path):
    """A member with any suffix can have any content."""
    packed, hollow = io.BytesIO(), io.BytesIO()
    count = 10**6
    matrix = sp.csr_matrix((np.zeros(count), np.zeros(count, "i4"), [0, count]), (1, 3))
    sp.save_npz(packed, matrix, compressed=True)
    header = {"descr": "|S0", "fortran_order": False, "shape": (10**8,)}
    np.lib.format.write_array_header_1_0(hollow, header)
    sparse = described("scipy.sparse._csr.csr_matrix", "SparseMatrixNode", type="scipy")
    for node, data, message in (
        (sparse | {"file": "x.bin", "__id__": 900}, packed.getvalue(), "is compressed"),
        (stored("x.bin", 900), hollow.getvalue(), "not of numbers or text"),
    ):
        path = saved(tmp_path, "LDG")
        change_value(path, "gamma", to=node)
        rewrite(path, members(path) | {"x.bin": data})
        text, peak = peak_of_refusal(path)
        assert message in text
        assert peak < 2**21


@pytest.mark.parametrize("number", [0, None, -3, 1.0, True, "a"])
def test_objects_without_a_valid_number_are_refused(tmp_path, number):
    path = saved(tmp_path, "LDG")
    member, _ = array_at(path, "mean_")
    change_value(path, "gamma", to=listed([stored(member, number)] * 500))
    assert "number is not a positive integer" in refusal(path)


def test_nested_references_are_refused(tmp_path):
    """The innermost of n lists, each of which refers to the next twice, would be read 2^n times."""
    references, copies = listed([], __id__=900), listed([], __id__=900)
    for level in range(901, 940):
        references = listed([references, {"__id__": level - 1}], __id__=level)
        copies = listed([copies, listed([], __id__=level - 1)], __id__=level)
    for node, message in ((references, "without a type"), (copies, "in two ways")):
        path = saved(tmp_path, "LDG")
        change_value(path, "gamma", to=node)
        started = time.perf_counter()
        assert message in refusal(path)
        assert time.perf_counter() - started < 5


def test_arrays_inside_arrays_of_objects_are_refused(tmp_path):
    path = saved(tmp_path, "LDG")
    member, _ = array_at(path, "mean_")
    shape = described("builtins.tuple", "TupleNode", content=[value(500), value(4)])
    many = described("numpy.ndarray", "NdArrayNode", type="json", shape=shape)
    change_value(path, "gamma", to=many | {"content": [stored(member, 900)] * 500})
    change_value(path, "mean_", to=value(3))
    assert "arrays within an array" in refusal(path)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        pytest.param(
            listed([value(1)] * 500_001), "more than 500,000 objects", marks=pytest.mark.long
        ),
        (value("[" * 1_000_001), "more than 500,000 objects"),
        (listed([described("numpy.exp", "FunctionNode")] * 20_001), "more than 20,000 objects"),
        (value([[]] * 10), "JSON content that is not a number or text"),
        (reduce(lambda deep, _: listed([deep]), range(110), listed([])), "deeper than 100 levels"),
    ],
    ids=["values", "brackets", "functions", "lists", "depth"],
)
def test_numbers_of_objects_are_limited(tmp_path, node, message):
    path = saved(tmp_path, "LDG")
    change_value(path, "gamma", to=node)
    assert message in refusal(path)


@pytest.mark.parametrize("position", [625, 10**9, -1])
def test_states_of_random_numbers_are_checked(tmp_path, position):
    """NumPy reads out of bounds if the position is invalid."""
    path = saved(tmp_path, "GEM, partly fitted")
    change_value(path, "random_state", "state", "pos", to=value(position))
    assert "state of random numbers" in refusal(path)


# ---- types ---------------------------------------------------------------------------------------


NOTHING = described("builtins.dict", "DictNode", content={}) | {
    "key_types": described("builtins.list", "ListNode", content=[])
}
ARGUMENTS = described("builtins.tuple", "TupleNode", content=[value("echo")])


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (described("os.system", "FunctionNode"), "os.system"),
        (described("subprocess.Popen", "ConstructorFromReduceNode", content=ARGUMENTS), "Popen"),
        (described("sklearn.tree._tree.Tree", content=NOTHING), "sklearn.tree._tree.Tree"),
        (described("eigenfeat.cli.main.main", "ObjectNode"), "eigenfeat.cli.main.main"),
        (described("eigenfeat.no.Such", content=NOTHING), "eigenfeat.no.Such"),
        (described("eigenfeat.gem.gem.np.GEM", content=NOTHING), "eigenfeat.gem.gem.np.GEM"),
    ],
    ids=lambda node: str(node)[:50],
)
def test_types_that_are_not_trusted_are_named(tmp_path, node, name):
    path = saved(tmp_path, "LDG")
    change_value(path, "gamma", to=node)
    text = refusal(path)
    assert "not trusted" in text
    assert name in text


def test_errors_escape_names_of_types(tmp_path):
    path = saved(tmp_path, "LDG")
    many = [described(f"a.b\x1b[31m\n{i}", content=NOTHING) for i in range(99)]
    change_value(path, "gamma", to=listed(many))
    text = refusal(path)
    assert text.isprintable()
    assert "and 79 more; if its source is trusted" in text
    assert len(text) < 2500


@pytest.mark.parametrize(
    "model",
    [
        CountVectorizer(),
        HistGradientBoostingClassifier(),
        KMeans(2),
        KNeighborsClassifier(),
        OneHotEncoder(),
        SGDClassifier(),
        SplineTransformer(),
        SVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_types_whose_compiled_code_trusts_arrays_are_not_trusted(tmp_path, model):
    ef.save(model, tmp_path / "model")
    name = f"{type(model).__module__}.{type(model).__name__}"
    assert f"load(path, trusted=['{name}']) reads it" in refusal(tmp_path / "model")
    assert type(ef.load(tmp_path / "model", trusted=[name])) is type(model)
    assert type(ef.load(tmp_path / "model", trusted=[type(model)])) is type(model)


GEM = "eigenfeat.gem.gem.GEM"


@pytest.mark.parametrize(
    "node",
    [
        described(GEM, "ConstructorFromReduceNode", content=ARGUMENTS),
        described(GEM, "TypeNode"),
        described(GEM, "ListNode", content=[]),
        described(GEM, "MethodNode", content={"obj": described(GEM), "func": "fit"}),
        described("scipy.sparse._csr.csr_array", "ConstructorFromReduceNode", content=ARGUMENTS),
        described("scipy.sparse._csr.csr_array", content=NOTHING),
        described("numpy.dtype", "ConstructorFromReduceNode", content=ARGUMENTS),
        described("sklearn.calibration._CalibratedClassifier", "ListNode", content=[]),
    ],
    ids=lambda node: f"{node['__class__']} as {node['__loader__']}",
)
def test_trusted_names_are_trusted_with_one_loader(tmp_path, node):
    path = saved(tmp_path, "LDG")
    change_value(path, "gamma", to=node)
    text = refusal(path)
    assert node["__class__"] in text
    assert f"as a {node['__loader__']}" in text


def test_other_protocols_are_refused(tmp_path):
    path = saved(tmp_path, "LDG")
    module = {"module_path": "os", "function": "system"}
    change_value(path, "gamma", to=described("os.system", "FunctionNode", content=module))
    for protocol in (0, 1, -1, 99, "2", True, None):
        change_schema(path, lambda schema, p=protocol: schema.update(protocol=p))
        assert refusal(path) is not None


# ---- inconsistent attributes ---------------------------------------------------------------------


def use(path):
    """Load a file and predict; Python errors are allowed, crashes are not."""
    text = refusal(path)
    if text is not None:
        assert text.startswith(f"{path}: ")
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(Exception):
        warnings.simplefilter("ignore")
        outputs(ef.load(path))


CODES = {
    7: r"codes: expected class indices in \[0, 3\), got 7",
    -1: "negative",
    2**63 - 1: "negative",
}
CODE_PATHS = {"LocalQDA": ("_codes",), "ReliableClassifier, local": ("classifier_", "_codes")}


@pytest.mark.parametrize("name", CODE_PATHS)
@pytest.mark.parametrize("code", CODES)
def test_class_codes_out_of_range_are_refused_when_they_are_used(tmp_path, name, code):
    path = saved(tmp_path, name)
    change_array(path, *CODE_PATHS[name], to=lambda codes: np.append(codes[1:], code))
    with pytest.raises(ValueError, match=CODES[code]):
        outputs(ef.load(path))
    change_array(path, *CODE_PATHS[name], to=lambda codes: codes[:, None])
    use(path)


def shorter(array):
    return array[..., :-1]


def not_a_number(array):
    array.reshape(-1)[0] = np.nan
    return array


def wider(array):
    return array[None]


def of_another_type(array):
    return array.astype("f4" if array.dtype.kind in "iu" else "i8")


def test_arrays_of_objects_are_refused(tmp_path):
    path = saved(tmp_path, "LDG")
    change_array(path, "mean_", to=lambda mean: npy(mean.astype(object), allow_pickle=True))
    assert "dtype object" in refusal(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(predict_proba=described("numpy.exp", "FunctionNode")),
        lambda state: state.pop("layers_"),
        lambda state: state.update(n_features_in_=value(12)),
        lambda state: state["layers_"]["content"].clear(),
        lambda state: state["layers_"]["content"].reverse(),
        lambda state: state["layers_"]["content"].append(value(3)),
        lambda state: inside(state["layers_"], 1).update(powers=value("abc")),
        lambda state: contents_of(state["logit_"]).pop("coef_"),
        lambda state: state.update(logit_=state["gem"]),
    ],
)
def test_inconsistent_attributes_never_crash(tmp_path, change):
    path = saved(tmp_path, "GEMClassifier, deep")
    text = described("builtins.str", "TypeNode")

    def rekeyed(node):
        if node.get("__loader__") == "DictNode":
            node["key_types"]["content"] = [text] * len(node["content"])
        return node

    def changed(schema):
        change(contents_of(schema))
        schema.update(json.loads(json.dumps(schema), object_hook=rekeyed))

    change_schema(path, changed)
    assert refusal(path) is None  # `use` loads it
    use(path)


def test_sparse_rows_are_checked(tmp_path):
    model = ef.ldg.KernelLDG(n_components=1, gamma=1.0, n_neighbors=2)
    model.fit(sp.csr_array(np.eye(12)[:, :6] + 1), np.arange(12) % 2)
    path, inner = tmp_path / "model", tmp_path / "inner"
    ef.save(model, path)
    (name,) = (name for name in members(path) if name.endswith(".npz"))
    whole = members(path)
    inner.write_bytes(whole[name])
    parts = members(inner)
    for part, bad in {
        "indices": [np.full(72, 9, np.int32), np.full(72, -1, np.int32), np.zeros(71)],
        "indptr": [np.arange(0, 130, 10, np.int32), np.full(13, 72, np.int32)],
        "shape": [np.array([12, 2]), np.array([10**15, 6]), np.array([-1, 6])],
    }.items():
        for array in bad:
            rewrite(inner, parts | {f"{part}.npy": npy(array)})
            rewrite(path, whole | {name: inner.read_bytes()})
            assert refusal(path) is not None, (part, array)


def test_sparse_directions_are_checked(tmp_path):
    path = saved(tmp_path, "RandomizedGEM")
    rows = ("directions_", "by_column", 0)
    change_array(path, *rows, "indices", to=lambda indices: indices + 10**6)
    with pytest.raises(ValueError, match=r"indices: expected columns in \[0, \d+\), got 10000"):
        outputs(ef.load(path))


def negative(array):
    return -1 - array


def large(array):
    return array + 10**6


def short_and_long(names):
    """Names of models; only models in `FUZZED` are tested in short runs."""
    return [n if n in FUZZED else pytest.param(n, marks=pytest.mark.long) for n in names]


@pytest.mark.parametrize("name", short_and_long(MODELS))
def test_inconsistent_arrays_never_crash(tmp_path, name):
    path = saved(tmp_path, name)
    contents, rng = members(path), np.random.default_rng(5)
    arrays = [member for member in contents if member.endswith(".npy")]
    for member in rng.permutation(arrays)[:4]:
        array = np.load(io.BytesIO(contents[member]))
        changes = [shorter, wider]
        if array.dtype.kind in "iuf":
            changes += [negative, large, of_another_type]
        if array.dtype.kind == "f" and array.size:
            changes += [not_a_number]
        for change in changes if array.shape else ():
            rewrite(path, contents | {member: npy(change(array.copy()))})
            use(path)


NOT_OURS = ("moments", "moments of few", "Pipeline")
SLOW = ("QDA", "SVC", "1-NN", "local", "features", "sampled")


@pytest.mark.parametrize(
    "name",
    short_and_long(n for n in MODELS if n not in NOT_OURS and n.partition(", ")[2] not in SLOW),
)
def test_attributes_of_other_types_never_crash(tmp_path, name):
    """Each fitted attribute in turn is None or text."""
    path = saved(tmp_path, name)
    model, whole = ef.load(path), path.read_bytes()
    parameters = model.get_params(deep=False) if isinstance(model, BaseEstimator) else {}
    for attribute in [key for key in json_attributes(path) if key not in parameters]:
        for other in (None, "text"):
            path.write_bytes(whole)
            change_value(path, attribute, to=other)
            use(path)


def json_attributes(path):
    return list(contents_of(json.loads(members(path)[SCHEMA])))


def test_invalid_parameters_raise_clear_errors(tmp_path):
    path = saved(tmp_path, "GEM")
    change_value(path, "expansion", to="planet")
    with pytest.raises(ValueError, match="expansion"):
        ef.load(path).transform(FRAME)
