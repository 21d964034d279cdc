"""``eigenfeat demo``: demonstrations, which draw pictures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from eigenfeat._base.extras import require

if TYPE_CHECKING:
    from rich.console import Console

    from eigenfeat.demo.datasets import Images
    from eigenfeat.demo.digits import Outcome

__all__ = ["demo"]


def demo(options: SimpleNamespace) -> int:
    """Compare representations of digits, or follow early decisions."""
    require("matplotlib", "pictures")
    from rich.console import Console

    from eigenfeat.demo import datasets, digits, report

    if options.what == "early":
        return _demo_early(options)
    started = time.perf_counter()
    console = Console()
    options.output.mkdir(parents=True, exist_ok=True)
    images = datasets.digits()
    splits = options.splits or (2 if options.quick else 6)
    outcomes = _compare(console, images, splits, options.seed, 2 if options.quick else 5)
    rows = round((1 - digits.TEST_SHARE) * len(images.y))
    title = f"Digits, {splits} random splits, {rows} rows for training"
    console.print()
    console.print(report.comparison_table(outcomes, title))
    report.write_csv(outcomes, options.output / "errors.csv")
    with console.status("drawing"):
        written = digits.draw(images, outcomes, options.output)
    console.print(f"Pictures and errors.csv in {options.output.resolve()}", soft_wrap=True)
    _finish(console, written, started)
    return 0


def _finish(console: Console, written: Sequence[tuple[Path, str]], started: float) -> None:
    width = max(16, *(len(path.name) for path, _ in written))
    for path, caption in written:
        console.print(f"  {path.name:<{width}} {caption}", highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} seconds in all", highlight=False)


def _demo_early(options: SimpleNamespace) -> int:
    from rich.console import Console

    from eigenfeat.demo import early

    started = time.perf_counter()
    console = Console()
    with console.status("deciding"):
        shown = early.demonstrate(options.seed)
    early.show(shown, console)
    with console.status("drawing"):
        written = early.draw(shown, options.output)
    console.print(f"Pictures in {options.output.resolve()}", soft_wrap=True)
    _finish(console, written, started)
    return 0


def _compare(
    console: Console, images: Images, splits: int, seed: int, n_directions: int
) -> dict[str, Outcome]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eigenfeat.demo import digits

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task("starting", total=4 * splits)

        def advance(step: str) -> None:
            progress.update(task, advance=1, description=step)

        return digits.compare(images, splits, seed, n_directions, advance)
