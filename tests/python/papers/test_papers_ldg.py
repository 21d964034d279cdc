"""The thesis's experiments on LDG, end to end on tiny files: splits, choices, tables, pictures."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import numpy as np
import papers_support
import pytest
from papers_support import PROTOCOLS
from rich.console import Console

from bench.papers import (
    ldg,
    measuring,
)
from bench.papers.protocol import QUICK_SPLITS, Context
from bench.papers.runner import reproduce

QUICK = Context(quick=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def console():
    return Console(width=160, record=True, file=io.StringIO())


def first_problems(name, count, last=0):
    problems = PROTOCOLS[name].problems
    chosen = problems[:count] + (problems[-last:] if last else ())
    return dataclasses.replace(PROTOCOLS[name], problems=chosen)


def run(protocol, folder, tmp_path, console, **options):
    return reproduce(
        protocol, folder, tmp_path, QUICK, console=console, measure=measuring.run, **options
    )


def lines_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---- end to end ----------------------------------------------------------------------------------


def test_table_3_1_is_printed_and_drawn(folder, tmp_path, console):
    protocol = first_problems("ldg", 2, last=1)
    outcomes = run(protocol, folder, tmp_path, console)
    assert [len(o.splits) for o in outcomes] == [QUICK_SPLITS] * 15
    text = console.export_text()
    for printed in (
        "71.3",
        "97.7",
        "135",
        "Table 3.1",
        "A quick run",
        "LDG beside the thesis",
        "Best or tied",
    ):
        assert printed in text
    for picture in ("accuracy", "sparsity", "embeddings"):
        assert (tmp_path / f"ldg-quick-{picture}.png").stat().st_size > 10_000
    lines = lines_of(tmp_path / "ldg-quick.csv")
    assert [(line["problem"], line["method"]) for line in lines] == [
        (o.problem, o.method) for o in outcomes
    ]
    for line, outcome in zip(lines, outcomes, strict=True):
        scores = [score.accuracy for score in outcome.splits]
        assert float(line["accuracy"]) == pytest.approx(np.mean(scores), abs=1e-6)
        assert float(line["accuracy_deviation"]) == pytest.approx(np.std(scores, ddof=1), abs=1e-6)
        assert np.array(json.loads(line["accuracies"])) == pytest.approx(scores, abs=1e-6)
        assert 0.3 < float(line["accuracy"]) <= 1
        assert (line["n_train"], line["n_test"], line["failure"]) == ("42", "18", "")
    curves = lines_of(tmp_path / "ldg-quick-curves.csv")
    of_pca = [c for c in curves if (c["problem"], c["method"]) == ("wine", "PCA")]
    assert [c["dimension"] for c in of_pca] == ["1", "2", "3", "4", "5", "6"]


def test_tables_of_few_samples_are_printed_and_drawn(folder, tmp_path, console):
    outcomes = run(first_problems("ldg-small", 1), folder, tmp_path, console)
    assert [o.method for o in outcomes] == [m.name for m in ldg.SMALL_METHODS if not m.peer]
    assert not any(outcome.failure for outcome in outcomes)
    text = console.export_text()
    for printed in ("Table 3.3", "Table 3.4", "87.7", "42.3", "3.5", "not at hand"):
        assert printed in text
    assert (tmp_path / "ldg-small-quick-accuracy.png").stat().st_size > 10_000
    line = lines_of(tmp_path / "ldg-small-quick.csv")[0]
    assert (line["thesis_accuracy_percent"], line["thesis_seconds"]) == ("87.7", "3.5")
    assert line["n_train"] == "18"


def test_transfer_is_printed_and_drawn(folder, tmp_path, console):
    protocol = first_problems("ldg-transfer", 2)
    outcomes = run(protocol, folder, tmp_path, console)
    assert [o.method for o in outcomes[:3]] == ["TransferLDG", "pooled PCA", "pooled FDA"]
    assert all((o.n_train, o.n_test) == (48, 32) for o in outcomes)
    assert [score.dimension for score in outcomes[0].splits] == [9, 9]
    assert [score.dimension for score in outcomes[2].splits] == [3, 3]
    assert "alpha" in outcomes[0].splits[0].parameters
    text = console.export_text()
    assert "amazon to webcam: TransferLDG on top in" in text
    assert "prints no figures" in text
    assert (tmp_path / "ldg-transfer-quick-accuracy.png").stat().st_size > 10_000


def test_digits_are_scattered_and_printed(folder, tmp_path, console):
    protocol = PROTOCOLS["ldg-digits"]
    pixels, scattered = protocol.problems[:3:2]
    protocol = dataclasses.replace(protocol, problems=(scattered,))
    outcomes = run(protocol, folder, tmp_path, console, only=["FDA"])
    assert [o.failure for o in outcomes] == [""]
    assert all((o.n_train, o.n_test) == (110, 90) for o in outcomes)
    domains = [problem.load(folder / problem.file, Context()) for problem in (pixels, scattered)]
    assert [d.Xs.shape for d in domains] == [(300, 256), (300, 2032)]
