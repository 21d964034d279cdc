"""Code in the guide and in docstrings runs as printed, and every public name has a page."""

import doctest
import importlib
import inspect
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from project import ROOT, listed
from sklearn.base import BaseEstimator

import eigenfeat
from eigenfeat.cli import main as cli
from eigenfeat.demo.parcels import parcels

DOCS = ROOT / "docs"
FAMILIES = ["", ".ldg", ".early", ".maxmargin", ".embedding", ".plotting", ".io"]
FAMILIES += [".report", ".gem", ".rayleigh", ".signals", ".linear", ".moments", ".pencils"]
FAMILIES += [".regions", ".samples", ".expansion", ".exceptions"]

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


# Pages that fit large models, or repeat the fits of another page.
LONG = {"many_classes", "report", "tables", "reduction", "recording"}
LONG |= {"gem.ensemble", "gem.joint", "report.report", "report.comparison", "pictures"}
LONG |= {"early.minimum_cost"}


def case(name, *values):
    return pytest.param(*values, id=name, marks=pytest.mark.long if name in LONG else ())


EEG = ROOT.parent / "shared" / "data" / "eeg"  # without this recording the page simulates one


@pytest.mark.parametrize(
    ("page", "eeg"),
    [
        *(case(page.stem, page, "nowhere") for page in PAGES),
        case("recording", DOCS / "guide" / "eeg.md", EEG),
    ],
)
def test_a_page_runs_from_top_to_bottom(page, eeg, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EEG", str(eeg))
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as few rows, or a limit of iterations
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), names)


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    """The Python blocks of the README run in their order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks(ROOT / "README.md"):
            exec(compile(block, "README.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert list(tmp_path.iterdir()) == []


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    """Files and pools are smaller than those of `eigenfeat demo`."""
    monkeypatch.chdir(tmp_path)
    quick = partial(eigenfeat.TableClassifier, ["columns"])
    monkeypatch.setattr("eigenfeat.report.comparison.TableClassifier", quick)
    X, y = parcels(160, np.random.default_rng(0))
    for name, rows in (("table.csv", slice(0, 110)), ("new.csv", slice(110, None))):
        X[rows].assign(fate=y[rows]).to_csv(name, index=False)
    commands = re.findall(r"^eigenfeat (.*)$", (ROOT / "README.md").read_text(), re.M)
    assert [line.split()[0] for line in commands] == ["compare", "fit", "predict", "report"]
    quicker = {"compare": ["--cv", "2", "--time-limit", "0.001"], "fit": ["--set", "views=columns"]}
    for line in commands:
        assert cli.main([*line.split(), *quicker.get(line.split()[0], [])]) == 0, line
    assert len(pd.read_csv("predicted.csv")) == len(pd.read_csv("new.csv"))


def estimators():
    """Return the classes with a page that have `fit`, and where they are listed."""
    for home, name in sorted(listed()):
        found = getattr(importlib.import_module(home), name)
        if isinstance(found, type) and issubclass(found, BaseEstimator):
            yield home, name, found


@pytest.mark.parametrize(("home", "name", "kind"), estimators())
def test_docstrings_of_estimators_name_their_use_and_related_estimators(home, name, kind):
    text = kind.__doc__
    assert "See Also\n    --------\n" in text
    assert " ".join(text.split()).count("User guide: :doc:`/guide/") == 1
    assert re.search(r"\bUse it\b", text)
    pages = {path.relative_to(DOCS).with_suffix("") for path in (DOCS / "guide").rglob("*.md")}
    for page in re.findall(r":doc:`/([\w/]+)`", text):
        assert Path(page) in pages
    related = re.search(r"    See Also\n    -+\n(.*?)\n\n    \S", text, re.S).group(1)
    for other in re.findall(r"^    ([\w.]+) : ", related, re.M):
        module, _, last = (
            f"{home}.{other}".rpartition(".") if "." not in other else (other.rpartition("."))
        )
        assert hasattr(importlib.import_module(module), last), other


def modules_with_examples():
    """Return the names of the modules whose files show examples, without importing them."""
    package = Path(eigenfeat.__file__).parent
    return [
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text()
    ]


@pytest.mark.parametrize("module", [case(one, one) for one in modules_with_examples()])
def test_docstrings_show_what_is_computed(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(importlib.import_module(f"eigenfeat.{module}")):
        runner.run(test, out=said.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_public_name_has_a_page(family):
    module = importlib.import_module(f"eigenfeat{family}")
    shown = {getattr(importlib.import_module(home), name) for home, name in listed()}
    missing = [
        name
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
        if name != "__version__" and getattr(module, name) not in shown
    ]
    assert missing == []


def documented():
    """Public classes and functions, and public methods."""
    shown = {getattr(importlib.import_module(home), name) for home, name in listed()}
    methods = {
        member
        for kind in filter(inspect.isclass, shown)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and member.__module__.startswith("eigenfeat.")
    }
    return {one: inspect.getdoc(one) or "" for one in shown | methods}


def test_docstrings_give_each_parameter_an_entry():
    shared = {
        f"{one.__module__}.{one.__qualname__}": found
        for one, text in documented().items()
        if (found := re.findall(r"^ *(\w+(?:, \*{0,2}\w+)+)(?: : |\n    \w)", text, re.M))
    }
    assert shared == {}


def test_docstrings_of_functions_have_sections_of_parameters_and_results():
    lacking = []
    for one, text in documented().items():
        if inspect.isclass(one):
            continue
        signature = inspect.signature(one)
        sections = re.findall(r"^(\w+)\n-+$", text, re.M)
        if {*signature.parameters} - {"self", "cls"} and "Parameters" not in sections:
            lacking.append(f"{one.__qualname__}: Parameters")
        if signature.return_annotation != "None" and not {"Returns", "Yields"} & {*sections}:
            lacking.append(f"{one.__qualname__}: Returns")
    assert lacking == []


def test_docstrings_give_the_defaults_of_signatures():
    wrong = []
    for one, text in documented().items():
        call = one.__init__ if inspect.isclass(one) else one
        parameters = inspect.signature(call).parameters if callable(call) else {}
        for name, given in re.findall(r"^(\w+) : .*default=(.+)$", text, re.M):
            if name in parameters and eval(given, {}) != parameters[name].default:
                wrong.append(f"{one.__qualname__}: {name}={parameters[name].default!r}")
    assert wrong == []


def test_references_lead_to_pages():
    pages = {f"{module}.{name}" for module, name in listed()}
    for page in PAGES:
        for name in re.findall(r"{(?:class|func)}`~([\w.]+)`", page.read_text()):
            assert name in pages, f"{page.name}: {name}"


def test_examples_begin_with_a_title_and_a_text():
    examples = sorted((DOCS / "gallery").glob("*/plot_*.py"))
    assert len(examples) >= 15
    for example in examples:
        assert re.match(r'"""\n.+\n=+\n\n', example.read_text()), example.name
