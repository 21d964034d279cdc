"""The figures of the papers from measured results: pairs of file names and figures."""

from __future__ import annotations

import numpy as np

from bench.papers import curves, families, figures
from bench.papers.accuracy_tables import accuracies, done_on
from bench.papers.families import Rules, accuracy

EMBEDDED_SET = "wine"  # whose samples are drawn in one and two dimensions
SPARSE = "sparse directions"  # part of the name of the problem of SparseLDG
WHOLE = ("all columns",)
EMBEDDED = (("LDG", families.ldg), ("PCA", families.pca), ("FDA", families.fisher))


def draw_sets(run):
    """Yield accuracy by dimension, sparsity of SparseLDG's directions, and embeddings."""
    sets = [problem for problem in run.protocol.problems if SPARSE not in problem.name]
    panels = panels_of(sets, run)
    if panels:
        title = "3-NN accuracy by dimension, Figures 3.4 and 3.5 of the thesis"
        yield _name(run, "accuracy"), curves.accuracy_panels(panels, title, WHOLE)
    for problem in run.protocol.problems:
        if problem not in sets and done_on(problem, run):
            yield _name(run, "sparsity"), _sparsity(problem, run)
    for problem in sets:
        if problem.name == EMBEDDED_SET and accuracies(problem, run):
            yield _name(run, "embeddings"), _embeddings(problem, run)


def draw_small(run):
    """Yield the accuracy of LDG among the other methods, on every set."""
    found = {p.name: accuracies(p, run) for p in run.protocol.problems}
    found = {name: methods for name, methods in found.items() if "LDG" in methods}
    if found:
        printed = {name: float(figures.TABLE_3_4[name]["LDG"]) for name in found}
        title = "Time series that are fewer than their samples, Table 3.4"
        figure = curves.comparison(found, "LDG", printed, title)
        yield _name(run, "accuracy"), figure


def draw_transfer(run):
    """Yield accuracy by dimension for every pair of domains."""
    panels = panels_of(run.protocol.problems, run)
    if panels:
        title = "Two labelled target rows a class: 3-NN accuracy by dimension, Figure 4.5"
        yield _name(run, "accuracy"), curves.accuracy_panels(panels, title)


def panels_of(problems, run):
    """Return accuracies by problem, method and dimension."""
    done = {problem.title: done_on(problem, run) for problem in problems}
    return {
        title: {name: _curve(outcome) for name, outcome in methods.items()}
        for title, methods in done.items()
        if methods
    }


def _name(run, picture):
    return f"{run.protocol.name}{'-quick' if run.context.quick else ''}-{picture}.png"


def _curve(outcome):
    """Return accuracies by dimension, for the dimensions that all splits share.

    A method that keeps all columns has a single point, at the number of columns of the first split.
    """
    if all(len(score.curve) <= 1 for score in outcome.splits):
        return {outcome.splits[0].dimension: [score.accuracy for score in outcome.splits]}
    shared = set.intersection(*(set(score.curve) for score in outcome.splits))
    return {m: [score.curve[m] for score in outcome.splits] for m in sorted(shared)}


def _legend(figure, axes, columns):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def _sparsity(problem, run):
    done = done_on(problem, run)
    shown = min(len(score.nonzeros) for o in done.values() for score in o.splits)
    counts = {
        name: np.array([score.nonzeros[:shown] for score in o.splits]) for name, o in done.items()
    }
    most = max(int(one.max()) for one in counts.values())
    accuracy_by_dimension = next(iter(panels_of([problem], run).values()))
    figure = curves.figure_of(12.0, 9.0)
    (left, right), below = figure.subplots(2, 2)
    sparse = [name for name in done if name.startswith("SparseLDG")]
    for axes, name in zip(below, sparse, strict=False):  # Figure 3.7
        axes.imshow(
            np.mean([score.overlaps for score in done[name].splits], axis=0), "gray", vmax=1
        )
        axes.set(title=f"{name}: absolute cosines", xlabel="direction", ylabel="direction")
    curves.draw_sparsity(left, counts, most)
    curves.draw_accuracy(right, accuracy_by_dimension, "3-NN accuracy by dimension")
    _legend(figure, left, 3)
    figure.suptitle(problem.title)
    return figure


def _embeddings(problem, run):
    """Draw test samples of the first split in one and two dimensions, by three reductions."""
    table = problem.load(run.folder / problem.file, run.context)
    rows, codes, queries, query_codes = table.parts(run.context.seed)
    rules = Rules(gammas=(0.2, 0.4, 0.6, 0.8, 1.0), at=5, most=2)
    figure = curves.figure_of(11.0, 7.0)
    grid = figure.subplots(2, len(EMBEDDED), height_ratios=[1.6, 1])
    for column, (name, build) in enumerate(EMBEDDED):
        _, model = next(build(run.context)(rows, codes, rules))
        for line, m in enumerate((2, 1)):
            known, asked = (model.transform(part)[:, :m] for part in (rows, queries))
            right = 100 * accuracy(known, codes, asked, query_codes)
            told = f"{name}, {m} dimension{'s' if m > 1 else ''}: {right:.0f}% right"
            axes = grid[line, column]
            for code in np.unique(query_codes):
                own = asked[query_codes == code]
                heights = own[:, 1] if m > 1 else np.full(len(own), code + 1)
                axes.scatter(own[:, 0], heights, s=17, alpha=0.75, lw=0, label=str(code + 1))
            axes.set(title=told, xlabel="first component")
    _legend(figure, grid[0, 0], 5)
    figure.suptitle(
        f"{len(queries)} test rows of {problem.title} in two dimensions and in one, and how many "
        "are classified right by their 3 nearest training rows"
    )
    return figure


# ---- early decisions: Figures 5.6 to 5.11 of the thesis ------------------------------------------

QDA, SVM = "local QDA, quadratic", "linear SVM, quadratic"
# Pictures: name, scores on the vertical axis, and methods.
EARLY = (
    ("sets", ("reliability",), tuple(
        f"{kind}, {which}"
        for kind in ("local QDA", "linear SVM")
        for which in ("quadratic", "box", "Chebyshev")
    )),
    ("completions", ("reliability",), (QDA, f"{QDA}, mixture", SVM, f"{SVM}, mixture")),
    ("literal-sets", ("reliability",), tuple(
        f"{kind}, {which}"
        for kind in ("local QDA", "linear SVM")
        for which in ("quadratic, literal", "box", "Chebyshev, literal")
    )),
    ("literal-completions", ("reliability",), tuple(
        f"{kind}, {which}"
        for kind in (QDA, SVM)
        for which in ("literal", "mixture, literal")
    )),
    ("methods", ("reliability", "accuracy"), (
        QDA, "local QDA on LDG, quadratic", "LDA, pairwise", "ECTS",
        "fixed time, local QDA", "fixed time, 1-NN",
    )),
)  # fmt: skip


def draw_early(run):
    """Yield reliability and accuracy against the average time of decision, for each set."""
    for problem in run.protocol.problems:
        done = {name: trial for name, trial in run.done(problem).items() if trial.points}
        for name, upwards, methods in EARLY:
            shown = [method for method in methods if method in done]
            for figure in upwards if len(shown) > 1 else ():
                drawn = curves.figure_of(6.4, 4.4)
                axes = drawn.subplots()
                for method in shown:
                    points = done[method].points
                    values = [getattr(point, figure) for point in points]
                    axes.plot([point.mean_time for point in points], values, "o-", label=method)
                axes.set(xlabel="average time of decision (samples)", ylabel=figure)
                axes.set_xlim(0, done[shown[0]].n_samples)
                _legend(drawn, axes, 2)
                drawn.suptitle(problem.name)
                end = "-accuracy" if figure == "accuracy" else ""
                yield f"early-{problem.name}-{name}{end}.png", drawn


# ---- max-margin data shifting: Figures 2 and 3 of its paper --------------------------------------


def draw_points(panels, y, title):
    """Draw rows in two dimensions, a panel for each way of finding these, labels in colours."""
    figure = curves.figure_of(4.5 * len(panels), 4.5, dpi=120)
    for axes, (name, points) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for label in np.unique(y):
            axes.scatter(*points[y == label].T[:2], s=6, label=str(label))
        axes.set(title=name, xticks=[], yticks=[])
    axes.legend(title=title, loc="best", markerscale=2)
    return figure


def draw_scales(panels):
    """Draw accuracy and reconstruction error by how far rows are moved."""
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    figure = curves.figure_of(4 * columns, 3.5 * lines, dpi=120)
    grid = np.ravel(figure.subplots(lines, columns))
    for axes, (name, curve) in zip(grid, panels.items(), strict=False):
        scales, right, error = np.array(curve).T
        axes.plot(scales, right, color="tab:red", marker="o", markersize=3)
        axes.set(title=name, xlabel="move relative to the rows")
        axes.set_ylabel("accuracy, %", color="tab:red")
        other = axes.twinx()
        other.plot(scales, error, color="tab:blue", marker="s", markersize=3)
        other.set_ylabel("reconstruction error", color="tab:blue")
    return figure
