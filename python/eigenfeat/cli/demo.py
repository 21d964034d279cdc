"""``eigenfeat demo``: demonstrations, which draw pictures."""

from __future__ import annotations

import time
from types import SimpleNamespace

from eigenfeat._base.extras import require

__all__ = ["demo"]


def demo(options: SimpleNamespace) -> int:
    """Compare representations of digits, or follow early decisions."""
    require("matplotlib", "pictures")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eigenfeat.demo import datasets, digits, early, report

    started, console = time.perf_counter(), Console()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.what == "early":
        with console.status("deciding"):
            shown = early.demonstrate(options.seed)
        early.show(shown, console)
        with console.status("drawing"):
            written = early.draw(shown, options.output)
    else:
        images = datasets.digits()
        splits = options.splits or (2 if options.quick else 6)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
            task = progress.add_task("starting", total=4 * splits)

            def advance(step: str) -> None:
                progress.update(task, advance=1, description=step)

            n_directions = 2 if options.quick else 5
            outcomes = digits.compare(images, splits, options.seed, n_directions, advance)
        rows = round((1 - digits.TEST_SHARE) * len(images.y))
        title = f"Digits, {splits} random splits, {rows} rows for training"
        console.print()
        console.print(report.comparison_table(outcomes, title))
        report.write_csv(outcomes, options.output / "errors.csv")
        with console.status("drawing"):
            written = digits.draw(images, outcomes, options.output)
    console.print(f"Pictures in {options.output.resolve()}", soft_wrap=True)
    width = max(16, *(len(path.name) for path, _ in written))
    for path, caption in written:
        console.print(f"  {path.name:<{width}} {caption}", highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} seconds in all", highlight=False)
    return 0
