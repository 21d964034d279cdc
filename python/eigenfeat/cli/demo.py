"""``eigenfeat demo``: demonstrations, which print scores and write pictures and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from eigenfeat._base.saved_files import taking_the_place_of
from eigenfeat.cli.output import Output

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

__all__ = ["demo"]

N_TRAIN, N_NEW = 600, 300  # parcels


def demo(options: SimpleNamespace, output: Output) -> None:
    """Run one demonstration, or all of them, and name the files that they wrote."""
    from rich.console import Console

    console = Console()
    options.output.mkdir(parents=True, exist_ok=True)
    shows = _SHOWS if options.what == "all" else {options.what: _SHOWS[options.what]}
    files: list[str] = []
    for show in shows.values():
        files += show(options, console)
    folder = options.output.resolve()
    text = f"{output.seconds:.0f} seconds. Files in {folder}: {', '.join(files)}"
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _table(options: SimpleNamespace, console: Console) -> list[str]:
    """Compare models on a table of parcels, and write a report of `TableClassifier`."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from eigenfeat.cli.compare import models_table
    from eigenfeat.demo.parcels import parcels
    from eigenfeat.report import compare, comparison_figure, write_report
    from eigenfeat.tables import TableClassifier

    rng = np.random.default_rng(options.seed)
    X, y = parcels(N_TRAIN, rng)
    X_new, y_new = parcels(N_NEW, rng)
    for name, table, labels in (("table.csv", X, y), ("new.csv", X_new, y_new)):
        with taking_the_place_of(options.output / name) as scratch:
            table.assign(fate=labels).to_csv(scratch, index=False)
    # Fits of small tables are faster without threads of OpenMP and BLAS.
    with console.status("comparing models on a table"), threadpool_limits(limits=1):
        models = compare(X, y, cv=2, random_state=options.seed)
    title = f"Parcels: {N_TRAIN} rows with words and missing values, three classes, two folds"
    _print(console, title, models_table(models[models["n_folds"] > 0]))
    with console.status("writing a report"):
        model = TableClassifier(random_state=options.seed).fit(X, y)
        report = options.output / "report.html"
        write_report(model, X_new, y_new, report, title="Parcels", seen_in_fit=False)
        pictures = _save({"models": comparison_figure(models)}, options.output)
    return ["table.csv", "new.csv", "report.html", *pictures]


def _digits(options: SimpleNamespace, console: Console) -> list[str]:
    """Compare representations of digits."""
    from eigenfeat.demo import digits

    X, y = digits.load_images()
    with console.status("") as status:
        outcomes = digits.compare(X, y, options.splits, options.seed, step=status.update)
    rows = round((1 - digits.TEST_SHARE) * len(y))
    title = f"Digits: {options.splits} random splits, {rows} rows for training"
    _print(console, title, outcomes.to_string(float_format="{:.2f}".format))
    with console.status("drawing"):
        return _save(digits.pictures(X, y, outcomes), options.output)


def _early(options: SimpleNamespace, console: Console) -> list[str]:
    """Follow the decision about one signal, and compare two early classifiers."""
    from eigenfeat.demo import early

    return _save(early.show(options.seed, console), options.output)


def _print(console: Console, title: str, text: str) -> None:
    console.print(title, style="bold", highlight=False)
    console.print(f"{text}\n", highlight=False, markup=False, soft_wrap=True)


def _save(pictures: Mapping[str, Figure], folder: Path) -> list[str]:
    """Write pictures into a folder, and return the names of their files."""
    for name, figure in pictures.items():
        with taking_the_place_of(folder / f"{name}.png") as scratch:
            figure.savefig(scratch, format="png")
    return [f"{name}.png" for name in pictures]


_SHOWS: dict[str, Callable[[SimpleNamespace, Any], list[str]]] = {
    "table": _table,
    "digits": _digits,
    "early": _early,
}
