"""The figures of the papers from measured results: pairs of file names and figures."""

import numpy as np

from bench.papers.accuracy_tables import done_on

COLUMNS = 3  # panels per line
SPARSE = "sparse directions"  # part of the name of the problem of SparseLDG
WHOLE = "all columns"  # the method without a reduction


def figure_of(width, height):
    """Return a figure without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def panels_of(count, width, height):
    """Return a figure and its axes, three in a line."""
    columns = min(COLUMNS, count)
    figure = figure_of(max(width * columns, 7.0), height * -(-count // columns) + 1.2)
    grid = figure.subplots(-(-count // columns), columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def legend(figure, columns):
    """Draw one legend below all panels of a figure."""
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    keys = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
    options = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    figure.legend(keys.values(), keys.keys(), **options)


def draw_band(axes, name, curve, number, unit=100.0, most=100.0):
    """Draw a line of means with a band of deviations, which does not leave 0 .. most.

    `curve` has the values of the splits by their place on the horizontal axis.
    """
    places = np.array(sorted(curve))
    values = [unit * np.asarray(curve[place], dtype=float) for place in places]
    mean = np.array([one.mean() for one in values])
    spread = np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in values])
    low, high = np.clip([mean - spread, mean + spread], 0.0, most)
    axes.plot(places, mean, color=f"C{number}", marker="o", ms=3, label=name)
    axes.fill_between(places, low, high, color=f"C{number}", alpha=0.14, lw=0)
    axes.xaxis.get_major_locator().set_params(integer=True)


# ---- LDG: Figures 3.4 to 3.8 and 4.5 of the thesis -----------------------------------------------


def draw_sets(run):
    """Yield accuracy by dimension, and sparsity of SparseLDG's directions."""
    sets = [problem for problem in run.protocol.problems if SPARSE not in problem.name]
    yield from _accuracy(sets, run, "3-NN accuracy by dimension, Figures 3.4 and 3.5 of the thesis")
    for problem in run.protocol.problems:
        if problem not in sets and done_on(problem, run):
            yield _name(run, "sparsity"), _sparsity(problem, run)


def draw_transfer(run):
    """Yield accuracy by dimension for every pair of domains."""
    title = "Two labelled target rows per class: 3-NN accuracy by dimension, Figure 4.5"
    yield from _accuracy(run.protocol.problems, run, title)


def _name(run, picture):
    return f"{run.protocol.name}{'-quick' if run.context.quick else ''}-{picture}.png"


def _accuracy(problems, run, title):
    """Yield accuracy by dimension, a panel for each problem."""
    done = {problem.title: done_on(problem, run) for problem in problems if done_on(problem, run)}
    if not done:
        return
    numbers = {
        name: i for i, name in enumerate(dict.fromkeys(n for one in done.values() for n in one))
    }
    figure, grid = panels_of(len(done), 3.7, 2.75)
    for axes, (name, outcomes) in zip(grid, done.items(), strict=True):
        _draw_accuracy(axes, outcomes, numbers)
        axes.set_title(name)
    figure.suptitle(f"{title}\nLines: means over splits; bands: one standard deviation")
    legend(figure, 4)
    yield _name(run, "accuracy"), figure


def _draw_accuracy(axes, outcomes, numbers):
    """Draw a curve for each method; a method that keeps all columns has a dashed line."""
    for name, outcome in outcomes.items():
        if name == WHOLE:
            mean = 100 * np.mean([score.accuracy for score in outcome.splits])
            axes.axhline(mean, color=f"C{numbers[name]}", ls="--", label=name)
        else:
            draw_band(axes, name, _curve(outcome), numbers[name])
    axes.set(xlabel="dimensions kept", ylabel="test accuracy in %")


def _curve(outcome):
    """Return accuracies by dimension, for the dimensions that all splits share.

    A method that keeps all columns has a single point, at the number of columns of the first split.
    """
    if all(len(score.curve) <= 1 for score in outcome.splits):
        return {outcome.splits[0].dimension: [score.accuracy for score in outcome.splits]}
    shared = set.intersection(*(set(score.curve) for score in outcome.splits))
    return {m: [score.curve[m] for score in outcome.splits] for m in sorted(shared)}


def _sparsity(problem, run):
    """Draw nonzero weights of the directions, accuracies, and absolute cosines (Figure 3.7)."""
    done = done_on(problem, run)
    shown = min(len(score.nonzeros) for o in done.values() for score in o.splits)
    figure = figure_of(12.0, 9.0)
    (left, right), below = figure.subplots(2, 2)
    sparse = [name for name in done if name.startswith("SparseLDG")]
    for axes, name in zip(below, sparse, strict=False):
        cosines = np.mean([score.overlaps for score in done[name].splits], axis=0)
        axes.imshow(cosines, "gray", vmax=1)
        axes.set(title=f"{name}: absolute cosines", xlabel="direction", ylabel="direction")
    for number, (name, outcome) in enumerate(done.items()):
        counts = {i + 1: [score.nonzeros[i] for score in outcome.splits] for i in range(shown)}
        draw_band(left, name, counts, number, unit=1.0, most=np.inf)
    title = "Columns that each direction has weight on"
    left.set(xlabel="direction", ylabel="columns with weight", title=title, ylim=0)
    _draw_accuracy(right, done, {name: number for number, name in enumerate(done)})
    right.set_title("3-NN accuracy by dimension")
    legend(figure, 3)
    figure.suptitle(problem.title)
    return figure


# ---- early decisions: Figures 5.6 to 5.11 of the thesis ------------------------------------------

EARLY = {  # methods by picture
    name: [f"{kind}, {rule}" for kind in ("local QDA", "linear SVM") for rule in rules]
    for name, rules in {
        "sets": ("quadratic", "box", "Chebyshev"),
        "completions": ("quadratic", "quadratic, mixture"),
        "literal-sets": ("quadratic, literal", "box", "Chebyshev, literal"),
        "literal-completions": ("quadratic, literal", "quadratic, mixture, literal"),
    }.items()
}
EARLY["methods"] = [
    *("local QDA, quadratic", "local QDA on LDG, quadratic", "LDA, pairwise", "ECTS"),
    *("fixed time, local QDA", "fixed time, 1-NN"),
]


def draw_early(run):
    """Yield reliability and accuracy against the average time of decision, for each set."""
    for problem in run.protocol.problems:
        done = {name: trial for name, trial in run.done(problem).items() if trial.points}
        for name, methods in EARLY.items():
            shown = [method for method in methods if method in done]
            scores = ("reliability", "accuracy") if name == "methods" else ("reliability",)
            for score in scores if len(shown) > 1 else ():
                figure = figure_of(6.4, 4.4)
                axes = figure.subplots()
                for method in shown:
                    points = done[method].points
                    values = [getattr(point, score) for point in points]
                    axes.plot([point.mean_time for point in points], values, "o-", label=method)
                axes.set(xlabel="average time of decision (samples)", ylabel=score)
                axes.set_xlim(0, done[shown[0]].n_samples)
                legend(figure, 2)
                figure.suptitle(problem.name)
                end = "-accuracy" if score == "accuracy" else ""
                yield f"early-{problem.name}-{name}{end}.png", figure


# ---- max-margin data shifting: Figures 2 and 3 of Wangni and Chen (2016) -------------------------


def draw_points(panels, y):
    """Draw samples reduced to two dimensions, a panel for each method, labels in colours."""
    figure, grid = panels_of(len(panels), 4.5, 4.5)
    for axes, (name, points) in zip(grid, panels.items(), strict=True):
        for label in np.unique(y):
            axes.scatter(*points[y == label].T[:2], s=6, label=str(label))
        axes.set(title=name, xticks=[], yticks=[])
    legend(figure, 10)
    return figure


def draw_scales(panels):
    """Draw accuracy and reconstruction error against the scale of the moves."""
    figure, grid = panels_of(len(panels), 4.0, 3.5)
    for axes, (name, curve) in zip(grid, panels.items(), strict=True):
        scales, right, error = np.array(curve).T
        axes.plot(scales, right, color="tab:red", marker="o", markersize=3)
        axes.set(title=name, xlabel="move relative to the rows")
        axes.set_ylabel("accuracy, %", color="tab:red")
        other = axes.twinx()
        other.plot(scales, error, color="tab:blue", marker="s", markersize=3)
        other.set_ylabel("reconstruction error", color="tab:blue")
    return figure
