"""Interleaved timings of all implementations, so that other load affects all of them."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

import eigenfeat


@dataclass
class Measurement:
    """Best and median seconds per ``unit`` of one implementation on one task."""

    task: str
    implementation: str
    threads: int
    best: float
    median: float
    rounds: int
    unit: str = "call"
    extra_bytes: int = 0
    note: str = ""


@dataclass
class Contender:
    """A name, a function to time, the items that a call processes, and the rounds to time it in."""

    name: str
    call: Callable[[], object]
    items: int = 1
    rounds: int | None = None
    note: str = ""


def status_kib(field: str) -> int:
    """Memory of this process by the name of Linux's field, such as VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def peak_extra_bytes(call: Callable[[], object]) -> int:
    """Return the rise of resident memory in bytes during the call (Linux; 0 elsewhere)."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = status_kib("VmRSS")
        result = call()
        peak = status_kib("VmHWM")
    except OSError:
        return 0
    del result
    return max(0, peak - before) * 1024


def from_fresh_process(
    run: Callable[..., Iterator[Any]], *arguments: Any, threads: int | None, seconds: float
) -> list[Any]:
    """Return the items of a generator in a new process, ended if an item takes over `seconds`."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_all, args=(sender, run, arguments, threads))
    process.start()
    sender.close()
    got = []
    try:
        while receiver.poll(seconds):
            got.append(receiver.recv())
    except EOFError:  # all items have been sent
        pass
    finally:
        process.terminate()
        process.join()
        receiver.close()
    return got


def _send_all(
    connection: Connection, run: Callable[..., Iterator[Any]], arguments: Any, threads: int | None
) -> None:
    with threadpool_limits(limits=threads):
        for item in run(*arguments):
            connection.send(item)
    connection.close()


def alternate(
    task: str,
    contenders: Sequence[Contender],
    threads: int,
    rounds: int,
    *,
    unit: str = "call",
    memory: bool = False,
) -> list[Measurement]:
    """Time all contenders in turn, after a warm-up call of each, which measures its memory, too."""
    seconds: dict[str, list[float]] = {c.name: [] for c in contenders}
    extra: dict[str, int] = {}
    with threadpool_limits(limits=threads):
        for c in contenders:
            if memory:
                extra[c.name] = peak_extra_bytes(c.call)
            elif c.rounds != 1:
                c.call()
        for turn in range(rounds):
            for c in contenders:
                if c.rounds is not None and turn >= c.rounds:
                    continue
                gc.collect()
                start = time.perf_counter()
                result = c.call()
                seconds[c.name].append((time.perf_counter() - start) / c.items)
                del result
    table = []
    for c in contenders:
        times = sorted(seconds[c.name])
        best, median = times[0], times[len(times) // 2]
        more = (len(times), unit, extra.get(c.name, 0), c.note)
        table.append(Measurement(task, c.name, threads, best, median, *more))
    return table


def write_csv(path: Path, rows: Sequence[Measurement]) -> None:
    """Write rows to the file, replacing rows of equal task, threads and instruction set."""
    new = pd.DataFrame([{**processor(), **asdict(row)} for row in rows])
    if path.exists():
        old = pd.read_csv(path, keep_default_na=False)
        key = ["tier", "threads", "task"]
        again = pd.MultiIndex.from_frame(old[key]).isin(pd.MultiIndex.from_frame(new[key]))
        new = pd.concat([old[~again], new])
    new.to_csv(path, index=False, float_format="%.4g")


def processor() -> dict[str, str]:
    """Tier of our kernels, and the kernels that each loaded OpenBLAS has chosen."""
    found = eigenfeat.show_versions(as_dict=True)
    kernels = {str(item.get("architecture")) for item in found["libraries"]}
    return {"tier": found["core"]["tier"], "blas_kernels": " ".join(sorted(kernels - {"None"}))}


def print_table(rows: Sequence[Measurement], ours: str) -> None:
    """Print the implementations of a task, with their ratio to ours (above 1: ours is faster)."""
    table = pd.DataFrame([asdict(row) for row in rows]).set_index("implementation")
    for name in ("best", "median"):
        table[f"{name} / ours"] = table[name] / table.loc[ours, name]
    table["extra MiB"] = (table["extra_bytes"] / 2**20).round()
    print(f"\n{rows[0].task}, {rows[0].threads} thread(s), seconds")
    columns = ["best", "median", "best / ours", "median / ours", "extra MiB", "note"]
    print(table[columns].to_string(float_format="{:.4g}".format), flush=True)
