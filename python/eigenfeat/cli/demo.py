"""``eigenfeat demo``: demonstrations, which draw pictures."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from eigenfeat._base.saved_files import taking_the_place_of

__all__ = ["demo"]


def demo(options: SimpleNamespace) -> int:
    """Compare representations of digits, or follow early decisions."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eigenfeat.demo import digits, early

    pictures: dict[str, Any]
    started, console = time.perf_counter(), Console()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.what == "early":
        with console.status("deciding"):
            shown = early.demonstrate(options.seed)
        early.show(shown, console)
        with console.status("drawing"):
            pictures = early.pictures(shown)
    else:
        X, y = digits.load_images()
        splits = options.splits or (2 if options.quick else 6)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
            task = progress.add_task("starting", total=4 * splits)

            def advance(step: str) -> None:
                progress.update(task, advance=1, description=step)

            n_directions = 2 if options.quick else 5
            outcomes = digits.compare(X, y, splits, options.seed, n_directions, advance)
        rows = round((1 - digits.TEST_SHARE) * len(y))
        title = f"Digits, {splits} random splits, {rows} rows for training"
        console.print()
        console.print(digits.table(outcomes, title))
        with console.status("drawing"):
            pictures = digits.pictures(X, y, outcomes)
    console.print(f"Pictures in {options.output.resolve()}", soft_wrap=True)
    for name, (figure, caption) in pictures.items():
        with taking_the_place_of(options.output / f"{name}.png") as scratch:
            figure.savefig(scratch, format="png")
        console.print(f"  {name + '.png':<20} {caption}", highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} seconds in all", highlight=False)
    return 0
