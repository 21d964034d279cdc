"""What the guide and docstrings show runs as it stands, and every public name has a page."""

import doctest
import importlib
import re
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import eigenfeat

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FAMILIES = ["", ".ldg", ".incomplete", ".maxmargin", ".distributed", ".plotting", ".models"]
FAMILIES += [".report", ".gem", ".rayleigh", ".signals", ".linear", ".moments", ".pencils"]
FAMILIES += [".regions", ".rows", ".expansion", ".exceptions"]

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="docs/ is not there: the tests run from a source distribution"
)


def blocks(path):
    """Return the Python blocks of a Markdown page, each at its line for tracebacks."""
    found = re.finditer(r"^```python\n(.*?)^```", text := path.read_text(), re.M | re.S)
    return ["\n" * text[: one.start(1)].count("\n") + one.group(1) for one in found]


PAGES = [
    ROOT / "python" / "README.md",
    DOCS / "quick_start.md",
    *sorted((DOCS / "guide").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as few rows, or a limit of iterations
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), names)


def test_the_readme_runs(tmp_path, monkeypatch):
    """Its blocks, in their order, with the names that stand for a reader's own data."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(n_class=3, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X[:, ::4], y, random_state=0)
    table = pd.DataFrame(X_train, columns=[f"x{i}" for i in range(16)])
    table.assign(label=y_train).to_parquet("rows.parquet")
    np.save("rows.npy", X_train)
    moments = eigenfeat.ClassMoments().update(X_train, y_train)
    names = {
        "__name__": "readme",
        "X_train": X_train,
        "X_test": X_test,
        "y_train": y_train,
        "y_test": y_test,
        "memory_mapped_X": np.load("rows.npy", mmap_mode="r"),
        "y": y_train,
        "dask_X": da.from_array(X_train, chunks=(100, 16)),
        "dask_y": da.from_array(y_train, chunks=100),
        "X_incomplete": np.where(np.arange(16) < 12, X_test, np.nan),
        "A": np.stack([moments.covariance(label) for label in range(3)]),
        "B": np.eye(16),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks(ROOT / "README.md"):
            text = block.replace("n_vectors=20", "n_vectors=8")  # of 16 columns
            exec(compile(text, "README.md", "exec"), names)


def modules_with_examples():
    """Return the names of the modules whose files show examples, without importing them."""
    package = Path(eigenfeat.__file__).parent
    return [
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text() and path.name != "aeon.py"
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_docstrings_show_what_is_computed(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(importlib.import_module(f"eigenfeat.{module}")):
        runner.run(test, out=said.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(said)


def listed():
    """Return (module, name) of everything that has an API page."""
    found, module = set(), ""
    for page in set((DOCS / "api").glob("*.rst")) - {DOCS / "api" / "index.rst"}:
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   [\w.]+", line):
                home, _, name = f"{module}.{line.strip()}".rpartition(".")
                found.add((home, name))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_public_name_has_a_page(family):
    module = importlib.import_module(f"eigenfeat{family}")
    shown = {
        getattr(importlib.import_module(home), name)
        for home, name in listed()
        if not home.endswith(".aeon")  # which is an extra
    }
    missing = [
        name
        for name in module.__all__
        if name != "__version__" and getattr(module, name) not in shown
    ]
    assert missing == []


def test_references_lead_to_pages():
    pages = {f"{module}.{name}" for module, name in listed()}
    for page in PAGES:
        for name in re.findall(r"{(?:class|func)}`~([\w.]+)`", page.read_text()):
            assert name in pages, f"{page.name}: {name}"


def test_examples_say_what_they_show():
    examples = sorted((DOCS / "gallery").glob("*/plot_*.py"))
    assert len(examples) >= 15
    for example in examples:
        assert re.match(r'"""\n.+\n=+\n\n', example.read_text()), example.name
