"""`eigenfeat report` on files."""

import json
from pathlib import Path

import pytest
from command_line import run
from flat_gem import gem_classifier

import eigenfeat as ef


@pytest.fixture
def files(insects):
    X, kinds = insects
    ef.save(gem_classifier(n_directions=1).fit(X[:300], kinds[:300]), "model.efm")
    return X[300:], kinds[300:]


COMMAND = ["report", "model.efm", "test.csv", "--target", "kind", "-o", "page.html"]


def test_the_page_says_what_evaluate_says(files):
    status, out, err = run(*COMMAND)
    assert (status, err) == (0, "")
    assert out.startswith("page.html: 200 rows, ")
    text = Path("page.html").read_text()
    measured = json.loads(run("evaluate", *COMMAND[1:5], "--json")[1])
    assert "<title>Report: GEMClassifier</title>" in text
    assert f">{measured['accuracy']:.1%}<" in text
    assert "test.csv" in text
    assert "model.efm" in text


@pytest.mark.usefixtures("undrawn")
def test_many_rows_are_drawn_at_random(files):
    found = json.loads(run(*COMMAND, "--max-rows", "80", "--block-rows", "7", "--json")[1])
    assert (found["rows"], found["of_rows"]) == (80, 200)
    assert "(80 drawn at random from 200)" in Path("page.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_gaps_in_text_alone(files):
    """A model of numbers without gaps takes missing texts, which are a category."""
    _, kinds = files
    place = [None, "north", "south"]
    lines = [f"{j % 7},{place[j % 3] or ''},{kind}" for j, kind in enumerate(kinds)]
    Path("towns.csv").write_text("\n".join(["size,place,kind", *lines]) + "\n")
    fit = ("fit", "towns.csv", "--target", "kind", "-o", "towns.efm", "--set", "views=columns")
    assert run(*fit)[0] == 0
    rows = ("towns.efm", "towns.csv", "--target", "kind")
    assert run("report", *rows, "-o", "page.html")[0] == 0
    assert "place" in run("inspect", *rows)[1]
