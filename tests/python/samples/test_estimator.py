"""Links to documentation, messages to the logger, and the files that a fit enters."""

import importlib
import logging
import re
import sys
from pathlib import Path

import pytest
from every_estimator import ESTIMATORS, X, Y
from flat_gem import gem_classifier
from project import listed
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat.samples import estimator as shared


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "," not in name])
def test_links_lead_to_a_page_that_exists(name, monkeypatch):
    model = ESTIMATORS[name]()
    assert model._get_doc_link() == ""
    assert "<a " not in model._repr_html_().partition("sk-estimator-doc-link")[0]
    monkeypatch.setattr(shared, "DOCUMENTATION_URL", "https://docs.example/")
    link = model._get_doc_link()
    page = re.fullmatch(r"https://docs\.example/api/generated/([\w.]+)\.html", link)
    assert page is not None
    assert link in model._repr_html_()
    home, _, own = page[1].rpartition(".")
    if pages := listed():
        assert (home, own) in pages
    assert getattr(importlib.import_module(home), own) is type(model)


def test_messages_go_to_the_logger_and_with_verbose_to_stderr(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="eigenfeat"):
        gem_classifier(n_directions=1).fit(X, Y)
        ef.TableClassifier(["columns"]).fit(X, Y)
    messages = [record.getMessage() for record in caplog.records if record.name == "eigenfeat"]
    assert any(text.startswith("GEM: directions: ") for text in messages)
    assert any(text.startswith("GEMClassifier: logit: ") for text in messages)
    assert any(text.startswith("TableClassifier: view ") for text in messages)
    assert capsys.readouterr() == ("", "")
    caplog.clear()
    ef.TableClassifier(["columns"], verbose=1).fit(X, Y)
    assert caplog.records == []  # the logger's level is above INFO here
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("[TableClassifier] ")
    with caplog.at_level(logging.INFO, logger="eigenfeat"):
        ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}).fit(X, Y)
    assert any("penalty=0.1: " in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (ef.GEMClassifier(), 14),
        (ef.TableClassifier(), 20),
        (ef.LDG(), 10),
        (ef.ReliableClassifier(LinearDiscriminantAnalysis()), 12),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fit_enters_few_files(model, most):
    """A reader who follows a fit opens at most these numbers of files."""
    entered, package = set(), str(Path(ef.__file__).parent)

    def note(frame, event, argument):
        code = frame.f_code
        if code.co_filename.startswith(package) and code.co_name != "<module>":
            entered.add(code.co_filename)

    X, y = load_digits(return_X_y=True)
    sys.setprofile(note)
    try:
        model.fit(X[:200, 20:28], y[:200])
    finally:
        sys.setprofile(None)
    assert 0 < len(entered) <= most, sorted(entered)
