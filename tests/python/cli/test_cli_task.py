"""`--task`: a target of many distinct numbers is fitted by a regression, never by classes."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run

import eigenfeat as ef


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """A table with a word and a gap, whose target has more than 150 distinct whole numbers."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    area, zone = random.normal(1500, 400, 500).round(), random.choice(["RL", "RM"], 500)
    price = 100 * area + 20_000 * (zone == "RL") + random.normal(0, 5000, 500)
    frame = pd.DataFrame({"area": area, "zone": zone, "price": price.round(-3).astype(int)})
    frame.loc[7, "area"] = None
    frame[:400].to_csv("train.csv", index=False)
    frame[400:].to_csv("new.csv", index=False)
    return frame


FIT = ("fit", "train.csv", "--target", "price", "-o", "m.efm")
QUICK = (*FIT, "--set", "views=columns")


def test_many_numbers_are_fitted_by_a_regression(houses):
    status, out, err = run(*QUICK)
    assert status == 0
    assert out.startswith("m.efm: TableRegressor, 400 rows in memory, 2 features, target 'price'; ")
    assert "153 distinct numbers in the target 'price': fitting a regression (--task cl" in err
    X, y = houses.drop(columns="price"), houses["price"]
    expected = ef.TableRegressor("columns").fit(X[:400], y[:400])
    assert run("predict", "m.efm", "new.csv", "-o", "found.npy")[0] == 0
    np.testing.assert_allclose(np.load("found.npy"), expected.predict(X[400:]), rtol=1e-9)
    np.testing.assert_allclose(ef.load("m.efm").predict(X[400:]), np.load("found.npy"))
    found = json.loads(run("evaluate", "m.efm", "new.csv", "--target", "price", "--json")[1])
    assert found["r2"] == pytest.approx(expected.score(X[400:], y[400:]))
    assert found["r2"] > 0.9
    said = run("evaluate", "m.efm", "new.csv", "--target", "price")[1]
    assert said.startswith("m.efm: Root mean squared error ")
    assert f"{found['r2']:.4f}" in said
    deviation = np.std(y[400:])
    assert found["mean_root_mean_squared_error"] == pytest.approx(deviation)


def test_the_task_can_be_given(houses):
    status, out, err = run(*QUICK, "--task", "regression", "--seed", "3", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["target"] == "price"
    assert ef.load("m.efm").random_state == 3
    houses["price"] = houses["price"] // 50_000  # a few numbers are classes
    houses.to_csv("train.csv", index=False)
    found = json.loads(run(*QUICK, "--json")[1])
    assert found["classes"] == [*range(6)]
    assert run(*QUICK, "--task", "regression")[0] == 0


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ((*FIT, "--model", "ldg", "--drop", "zone", "--skip-bad"), "as --model ldg needs classes"),
        ((*FIT, "--features", "--drop", "zone"), "as --features needs classes, got 153 dist"),
        (("search", *FIT[1:]), "--task: expected classification, as search needs classes"),
        (("search", *FIT[1:], "--task", "regression"), "as search needs classes, got --task"),
        ((*FIT, "--task", "regression", "--set", "depth=2"), "--set depth: expected a parameter"),
        (("moments", *FIT[1:], "--drop", "zone", "--skip-bad"), "--target: expected labels of cla"),
    ],
)
def test_commands_that_need_classes_refuse_many_numbers(houses, command, error):
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    assert error in err


def test_auto_refuses_whole_numbers_that_may_be_classes(houses):
    houses.assign(price=np.arange(500) % 120).iloc[np.arange(6000) % 500].to_csv(
        "train.csv", index=False
    )
    status, _, err = run(*FIT)
    assert status == 2
    assert "--task: expected classification or regression, got auto for 120 distinct num" in err


def test_numbers_with_fractions_are_classes_only_as_text(houses):
    houses.assign(price=np.arange(len(houses)) % 3 / 2).to_csv("train.csv", index=False)
    command = QUICK
    for task in ("auto", "classification"):
        status, _, err = run(*command, "--task", task)
        said = f"expected regression for numbers such as 0.5 in the target 'price', got {task}"
        assert (status, f"{said}; --labels str" in err) == (2, True), err
    assert run(*command, "--labels", "str")[0] == 0
    assert ef.load("m.efm").classes_.tolist() == ["0.0", "0.5", "1.0"]


@pytest.mark.parametrize("form", ["{:,.2f}", "{} EUR"])
def test_text_that_differs_in_most_rows_is_no_target(houses, form):
    houses["price"] = [form.format(price) for price in np.arange(500) * 1000]
    houses[:400].to_csv("train.csv", index=False)
    text = repr(houses["price"][0])
    status, _, err = run(*FIT)
    assert status == 2
    assert "--task: expected classes or numbers in the target 'price', got 400 distinct te" in err
    assert f"such as {text}; write numbers without units" in err
    status, _, err = run("compare", "train.csv", "--target", "price")
    assert status == 2
    assert "--task: expected 'classification' or 'regression', got 'auto' for 400 distinct" in err


@pytest.mark.filterwarnings("ignore:.*columns without any value")
def test_columns_without_a_value_are_left_out_by_name(houses):
    """Columns are left out with an encoder (`zone` is text) and without one."""
    for columns in (["area", "zone"], ["area"]):
        houses[[*columns, "price"]].assign(void=np.nan).to_csv("train.csv", index=False)
        out = run(*QUICK, "--task", "regression")[1]
        assert "  left out  void (no value" in out
        assert f"  columns   1 number{', 1 category' * (len(columns) - 1)}\n" in out
        assert "left out: 'void'" in run("inspect", "m.efm")[1]


def test_inspect_says_that_rows_of_the_fit_are_measured(houses):
    run(*QUICK, "--task", "regression")
    warning = "warning: train.csv: the fit has read this file: importances are too large\n"
    assert run("inspect", "m.efm", "train.csv")[2].startswith(warning)
    assert "the fit has read" not in run("inspect", "m.efm", "new.csv")[2]


def test_errors_of_numbers_have_equal_decimals(houses):
    houses["price"] = np.arange(500.0) % 61  # whose mean absolute error is 15.25
    houses[:488].to_csv("train.csv", index=False)
    out = run(*QUICK, "--task", "regression")[1]
    digits = [line.split()[3:5] for line in out.splitlines() if line.startswith("mean absolute")]
    assert [len(text.partition(".")[2]) for text in digits[0]] == [4, 4]


def test_intervals_of_predictions(houses):
    assert run(*QUICK)[0] == 0
    status, _, err = run("predict", "m.efm", "new.csv", "--coverage", "0.8", "-o", "p.csv")
    assert (status, err) == (0, "")
    found, model = pd.read_csv("p.csv"), ef.load("m.efm")
    X = houses[400:].drop(columns="price")
    assert [*found] == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found["prediction"], model.predict(X))
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(X, 0.8))


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (("--coverage", "1"), "'--coverage': 1.0 is not in the range 0<x<1."),
        (("--coverage", "0.9", "--proba"), "--proba: expected none with --coverage"),
        (
            ("--coverage", "0.9", "-o", "p.npy"),
            "--output: expected .csv or .parquet with --coverag",
        ),
        (("--coverage", "0.9"), "m.efm: expected a regression of tables (fit --task regression), "),
    ],
)
def test_intervals_are_of_regressions(houses, more, error):
    fit = ("fit", "train.csv", "--target", "zone", "-o", "m.efm", "--set", "views=columns")
    assert run(*fit)[0] == 0
    status, _, err = run("predict", "m.efm", "new.csv", "-o", "p.csv", *more)
    assert (status > 0, error in err) == (True, True), err
