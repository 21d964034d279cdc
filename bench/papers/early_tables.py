"""Early decisions beside the thesis's figures: lines of the CSV file, and tables."""

from bench.papers.figures import figures
from bench.papers.tables import HOW, frame_of, picked

TABLE_TAU = 0.9  # of the thesis's tables
PLAIN, REDUCED = "local QDA, quadratic", "local QDA on LDG, quadratic"
FIGURES = ("reliability", "accuracy", "mean_time", "earliness", "harmonic_mean")
SECONDS = figures("thesis-5.2-5.3")  # seconds per test row, by method and set
# Features of LDG, and milliseconds of a decision at t = 1 with all columns and with LDG's features.
FIRST_STEP = figures("thesis-5.4")


def lines(run):
    """Return a line for each value of each method's knob."""
    return [line for trial in run.outcomes for line in _lines(trial, run.context)]


def _lines(trial, context):
    common = {
        **picked(trial, "problem", "method", "knob", "fit_seconds", "features"),
        **picked(trial, "first_step_seconds", "chosen", "failure"),
        **picked(context, *HOW),
    }
    if not trial.points:
        yield common
    for point in trial.points:
        line = {
            **common,
            **picked(point, "value", *FIGURES),
            "n_test": point.n,
            "seconds_per_row": point.seconds,
        }
        if point.value in trial.taus:
            # The certified tau, and scores of a tau that equals the agreement.
            nominal = trial.nominal[point.value]
            line["tau"] = trial.taus[point.value]
            line |= {f"nominal_{name}": getattr(nominal, name) for name in FIGURES[:3]}
        yield line


def tell(run):
    """Yield a table for every set, Tables 5.2 to 5.4, and calibrated rules."""
    found = lines(run)
    done = {(trial.problem, trial.method): trial for trial in run.outcomes if trial.points}
    shown = ("knob", "value", "n_test", *FIGURES, "seconds_per_row")
    for name in dict.fromkeys(problem for problem, _ in done):
        yield f"\n{name}"
        of_set = [line for line in found if line["problem"] == name and "value" in line]
        yield frame_of(of_set, "method", *shown)
    yield "\nTables 5.2 and 5.3: seconds per test row at tau 0.9"
    yield frame_of(
        {"method": method}
        | _beside({name: _row_seconds(done, name, method) for name in sets}, sets)
        for method, sets in SECONDS.items()
    )
    yield "\nTable 5.4: LDG's features, and milliseconds to decide at t = 1"
    yield frame_of(
        {"set": name} | _beside(_first_step(done, name), paper)
        for name, paper in FIRST_STEP.items()
    )
    if calibrated := [line for line in found if "tau" in line]:
        yield (
            "\nCalibrated for an agreement on one half of the test rows, tested on the other half, "
            "beside a tau that equals the agreement"
        )
        nominal = (f"nominal_{name}" for name in ("reliability", "mean_time"))
        yield frame_of(
            calibrated, "method", "problem", "value", *nominal, "tau", "reliability", "mean_time"
        )


def _beside(ours, thesis):
    """Return pairs of our figures and the thesis's."""
    return {
        key: value
        for name, printed in thesis.items()
        for key, value in ((name, ours.get(name)), (f"{name}, thesis", printed))
    }


def _row_seconds(done, name, method):
    points = done[name, method].points if (name, method) in done else ()
    return next((point.seconds for point in points if point.value == TABLE_TAU), None)


def _first_step(done, name):
    ours = {}
    if plain := done.get((name, PLAIN)):
        ours["all milliseconds"] = 1e3 * plain.first_step_seconds
    if reduced := done.get((name, REDUCED)):
        ours |= {
            "features": reduced.features,
            "LDG milliseconds": 1e3 * reduced.first_step_seconds,
        }
    return ours
