"""Early decisions beside the thesis's figures: tables for the terminal, and one CSV line a run."""

from __future__ import annotations

from bench.papers.figures import figures
from bench.papers.tables import HOW, new_table, picked

TABLE_TAU = 0.9  # of the thesis's tables
PLAIN, REDUCED = "local QDA, quadratic", "local QDA on LDG, quadratic"
FIGURES = ("reliability", "accuracy", "mean_time", "earliness", "harmonic_mean")
FIELDS = (
    *("problem", "method", "knob", "value", "n_test", *FIGURES, "seconds_per_row", "fit_seconds"),
    *("features", "first_step_seconds", "chosen", "tau", "nominal_reliability"),
    *("nominal_mean_time", "failure", *HOW),
)
SECONDS = figures("thesis-5.2-5.3")  # a test row, by method and set
FIRST_STEP = figures("thesis-5.4")  # features of LDG, milliseconds at t = 1 with all and with LDG


def tell(run):
    """Yield a table for every set, then Tables 5.2 to 5.4."""
    trials = run.outcomes
    for name in dict.fromkeys(trial.problem for trial in trials):
        yield ""
        yield name, "bold"
        yield set_table([trial for trial in trials if trial.problem == name])
    for title, table in (
        ("Tables 5.2 and 5.3: milliseconds a test row at tau 0.9", seconds_table(trials)),
        ("Table 5.4: milliseconds a test row to decide at t = 1", first_step_table(trials)),
        (
            "Calibrated for an agreement on one half of the test rows, tried on the other, beside "
            "a tau of as much",
            calibration_table(trials),
        ),
    ):
        if table.row_count:
            yield title, "bold"
            yield table


POINT = {  # what is told of a point, by heading
    "rows": lambda point: f"{point.n:,}",
    "reliability": lambda point: f"{point.reliability:.3f}",
    "accuracy": lambda point: f"{point.accuracy:.3f}",
    "mean\ntime": lambda point: f"{point.mean_time:.1f}",
    "harmonic\nmean": lambda point: f"{point.harmonic_mean:.3f}",
    "ms\na row": lambda point: _milliseconds(point.seconds),
}


def set_table(trials):
    """Return the runs of every method on one set."""
    table = new_table(["method", "", *POINT])
    for trial in trials:
        for place, point in enumerate(trial.points):
            told = (cell(point) for cell in POINT.values())
            name = "" if place else trial.method
            table.add_row(name, f"{trial.knob} {point.value:g}", *told)
        table.add_section()
    return table


def seconds_table(trials):
    """Return the thesis's and our times of the sets and completions it compares."""
    sets = list(next(iter(SECONDS.values())))
    table = new_table(
        ["method", *(f"{name}\n{who}" for name in sets for who in ("thesis", "here"))]
    )
    for method, paper in SECONDS.items():
        ours = {
            name: _milliseconds(point.seconds)
            for name in sets
            for point in getattr(_trial(trials, name, method), "points", ())
            if point.value == TABLE_TAU
        }
        theirs = {name: f"{1e3 * float(paper[name]):,.0f}" for name in sets}
        if ours:
            table.add_row(method, *(c for name in sets for c in (theirs[name], ours.get(name, ""))))
    return table


def first_step_table(trials):
    """Return the thesis's and our features of LDG, and times with and without them."""
    pairs = ("LDG features\nthesis", "\nhere", "all samples\nthesis", "\nhere", "LDG\nthesis")
    table = new_table(["set", *pairs, "\nhere"])
    for name, paper in FIRST_STEP.items():
        plain, reduced = (_trial(trials, name, method) for method in (PLAIN, REDUCED))
        if plain is None and reduced is None:
            continue
        times = (_milliseconds(one.first_seconds) if one else "" for one in (plain, reduced))
        ours = (str(reduced.features) if reduced else "", *times)
        pairs = zip(paper.values(), ours, strict=True)
        table.add_row(name, *(cell for pair in pairs for cell in pair))
    return table


def calibration_table(trials):
    """Return agreements wanted and realised, and times of decision, nominal and calibrated."""
    nominal = ("nominal\nrealised", "\nmean time")
    table = new_table(["set", "wanted", *nominal, "calibrated\ntau", "\nrealised", "\nmean time"])
    for method in dict.fromkeys(t.method for t in trials if t.nominal):
        table.add_row(method)
        for trial in (t for t in trials if t.method == method):
            points = {point.value: point for point in trial.points}
            for wanted, plain in trial.nominal.items():
                cells = ["not certified", "", ""]
                if wanted in points:
                    cells = [f"{trial.taus[wanted]:.3g}", *_realised(points[wanted])]
                table.add_row(f"  {trial.problem}", f"{wanted:g}", *_realised(plain), *cells)
    return table


def _realised(point):
    return f"{point.reliability:.3f}", f"{point.mean_time:.1f}"


def _trial(trials, name, method):
    found = [t for t in trials if (t.problem, t.method) == (name, method) and not t.failure]
    return found[0] if found else None


def _milliseconds(seconds):
    if seconds is None:
        return ""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def lines(run):
    """Return one line for each value of each method's knob."""
    return {"": (FIELDS, [line for trial in run.outcomes for line in _lines(trial, run.context)])}


def _lines(trial, context):
    common = {
        "fit_seconds": f"{trial.fit_seconds:.4f}",
        "features": trial.features or "",
        "first_step_seconds": "" if trial.first_seconds is None else f"{trial.first_seconds:.3e}",
        **picked(trial, "problem", "method", "knob", "chosen", "failure"),
        **picked(context, *HOW),
    }
    if not trial.points:
        yield common
    for point in trial.points:
        line = {
            **common,
            "value": f"{point.value:g}",
            "n_test": point.n,
            **{name: f"{value:.6f}" for name, value in picked(point, *FIGURES).items()},
            "seconds_per_row": f"{point.seconds:.3e}",
        }
        if point.value in trial.taus:  # what was certified, and what a tau of the agreement does
            nominal = trial.nominal[point.value]
            line["tau"] = f"{trial.taus[point.value]:g}"
            line["nominal_reliability"] = f"{nominal.reliability:.6f}"
            line["nominal_mean_time"] = f"{nominal.mean_time:.6f}"
        yield line
