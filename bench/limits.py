"""Fits under Ctrl-C, with too little memory, many times over, and with lost Dask clients.

    python bench/limits.py interrupts     # seconds from SIGINT to KeyboardInterrupt, by estimator
    python bench/limits.py memory         # fits at ten limits of address space (ulimit -v)
    python bench/limits.py growth         # resident memory over 200 small fits
    python bench/limits.py dask           # a client closed in the middle, unknown partitions

Each fit runs in a forked process of its own. An exclamation mark says that there is a defect: an
end without a Python error, more than a second after SIGINT, or memory that grows; or that a fit was
not done in the time it had.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from multiprocessing.connection import Connection

import numpy as np

import eigenfeat as ef
from limit_fits import SIZES, fits, rows

LATE = 1.0  # seconds from SIGINT to the end of a fit
BUFFERS = 80.0  # MiB for one or two of OpenBLAS's


# ---- children ------------------------------------------------------------------------------------


FORK = multiprocessing.get_context("fork")  # what a process imports takes longer than most fits


class Child:
    """A forked process that fits, and says when it is ready and how it ended."""

    def __init__(
        self, name: str, size: str, mebibytes: float | None = None, *, warm: bool = False
    ) -> None:
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115
        self._told, telling = FORK.Pipe(duplex=False)
        self.process = FORK.Process(
            target=fit, args=(telling, self._errors.fileno(), name, size, mebibytes, warm)
        )
        self.process.start()
        telling.close()

    def next_line(self, seconds: float) -> str | None:
        """What it says next; how it died, or None if it says nothing for so long."""
        if not self._told.poll(seconds):
            return None
        try:
            return str(self._told.recv())
        except EOFError:
            self.process.join(10)
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or [""])[-1]
            return f"status {self.process.exitcode}: {last.strip()[:120]}"

    def end(self) -> None:
        """Kill it, if it is still there."""
        self.process.kill()
        self.process.join()
        self._told.close()
        self._errors.close()


def fit(
    telling: Connection,
    errors: int,
    name: str,
    size: str,
    mebibytes: float | None,
    warm: bool,
) -> None:
    """Fit and tell how it ended; with so much more address space, if given."""
    os.dup2(errors, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    call = fits(size, name)[name]
    if warm:
        fits("small")[name]()  # what is imported late, threads, and buffers of BLAS
        # NumPy's BLAS starts its threads when it is loaded, and after a fork with its next large
        # call.
        np.linalg.solve(np.eye(600), np.ones((600, 600)))
    space = status_mebibytes("VmSize")
    if mebibytes is not None:
        limit = int((space + mebibytes) * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    telling.send("ready")
    start = time.perf_counter()
    try:
        call()
        seconds = time.perf_counter() - start
        end = f"finished in {seconds:.2f} s, {status_mebibytes('VmPeak') - space:.0f} MiB"
    except KeyboardInterrupt:
        end = "interrupted"
    except Exception as error:  # MemoryError, or a defect
        end = f"{type(error).__name__}: {str(error)[:90]}"
    telling.send(end)
    # Without Python's tidying up, which is not what is measured.
    os._exit(0)


def status_mebibytes(field: str) -> float:
    """A size from what Linux says of this process: VmSize, VmPeak, VmRSS."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


# ---- Ctrl-C --------------------------------------------------------------------------------------


def interrupts(names: list[str], delays: list[float], size: str) -> bool:
    """Print how long each fit goes on after SIGINT; whether all ended in time."""
    good = True
    for name in names:
        found = []
        for delay in delays:
            child = Child(name, size)
            ready = child.next_line(120)
            if ready != "ready":
                found.append(f"did not start ({ready}) !")
                good = False
            elif end := child.next_line(delay):
                found.append(end)
                good &= end.startswith("finished")
            else:
                start = time.perf_counter()
                os.kill(child.process.pid or 0, signal.SIGINT)
                end = child.next_line(30)
                seconds = time.perf_counter() - start
                late = seconds > LATE or end != "interrupted"
                good &= not late
                found.append(
                    f"{seconds:.2f} s{f' ({end})' if end != 'interrupted' else ''}"
                    f"{' !' if late else ''}"
                )
            child.end()
        print(f"{name:30} " + "  ".join(f"{text:>12}" for text in found), flush=True)
    return good


# ---- memory --------------------------------------------------------------------------------------


def memory(names: list[str], steps: int, size: str, patience: float) -> bool:
    """Fit at `steps` limits between what a small fit has left and 1.2 times what this one takes.

    The last one must do: many fits need all that they take for their last arrays.

    Every fit gets `patience` seconds, and one under a limit ten times what the fit without one has
    taken as well: threads take turns there.
    """
    good = True
    for name in names:
        start = time.perf_counter()
        whole = limited(name, None, size, patience)
        if not whole.startswith("finished"):
            print(f"{name:30} {whole} !", flush=True)
            good = False
            continue
        # Under a limit BLAS makes certain of a buffer, also where the fit needs no more memory.
        needed = max(float(whole.split()[-2]), BUFFERS)
        seconds = patience + 10 * (time.perf_counter() - start)
        levels = np.linspace(0, 1.2 * needed, steps)
        ends = [limited(name, level, size, seconds) for level in levels.tolist()]
        for i, end in enumerate(ends):
            if end.startswith("finished"):
                ends[i] = "ok"
            elif end.startswith("MemoryError"):
                ends[i] = "MemoryError"
            else:
                ends[i] = f"{end} !"
                good = False
        if ends[-1] == "MemoryError":
            ends[-1] += " !"
            good = False
        print(f"{name:30} {needed:5.0f} MiB: " + ", ".join(ends), flush=True)
    return good


def limited(name: str, mebibytes: float | None, size: str, seconds: float) -> str:
    """How a fit ends that gets so much address space, in one line."""
    child = Child(name, size, mebibytes, warm=True)
    end = child.next_line(seconds)
    if end == "ready":
        end = child.next_line(seconds)
    child.end()
    return end or f"not done in {seconds:.0f} s"


# ---- growth --------------------------------------------------------------------------------------


def growth(names: list[str], repetitions: int) -> bool:
    """Resident memory before and after so many small fits, after ten that do not count."""
    good = True
    warnings.simplefilter("ignore")
    calls = fits("small")
    for name in names:
        for _ in range(10):
            calls[name]()
        middle, before = 0.0, status_mebibytes("VmRSS")
        for i in range(repetitions):
            calls[name]()
            if i == repetitions // 2:
                middle = status_mebibytes("VmRSS")
        after = status_mebibytes("VmRSS")
        # What is kept for the next call comes early; what leaks comes all the time.
        grows = after - middle > 2
        good &= not grows
        print(
            f"{name:30} {before:8.1f} MiB, {middle - before:+6.1f}, {after - middle:+6.1f}"
            f"{' !' if grows else ''}",
            flush=True,
        )
    return good


# ---- Dask ----------------------------------------------------------------------------------------


def dask_clients() -> bool:
    """A client that is closed during a fit, and partitions that know their size only when read."""
    import threading

    import dask.array as da
    import pandas as pd
    from dask import dataframe as dd
    from distributed import Client, LocalCluster

    from eigenfeat import distributed

    good = True
    X, y = rows(4000, 30)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as c:
        for delay in (0.05, 0.3, 1.0):
            client = Client(c)
            large = da.random.default_rng(0).standard_normal((400_000, 200), chunks=(20_000, 200))
            labels = da.arange(400_000, chunks=20_000) % 10
            threading.Timer(delay, client.close).start()
            start = time.perf_counter()
            try:
                distributed.GEM(n_directions=3).fit(large, labels)
                end = "finished"
            except Exception as error:
                end = f"{type(error).__name__}: {str(error)[:90]}"
            seconds = time.perf_counter() - start
            bad = seconds > 30
            good &= not bad
            print(f"client closed after {delay} s: {end} in {seconds:.1f} s{' !' if bad else ''}")
            with contextlib.suppress(Exception):
                client.close()
        with Client(c):
            expected = ef.GEM(n_directions=3).fit(X[y < 7], y[y < 7])
            frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(30)]).assign(label=y)
            known = dd.from_pandas(frame, npartitions=5)
            unknown = known[known.label < 7]
            arrays = unknown.drop(columns="label").to_dask_array(), unknown.label.to_dask_array()
            for kind, given in (
                ("frame", (unknown.drop(columns="label"), unknown.label)),
                ("array", arrays),
            ):
                fitted = distributed.GEM(n_directions=3).fit(*given)
                out = fitted.transform(given[0]).compute()
                same = np.allclose(np.asarray(out), expected.transform(X[y < 7]), atol=1e-6)
                good &= same
                print(f"{kind} of partitions of unknown size: {'same' if same else 'differs !'}")
    return good


def main() -> int:
    """Run one of the tables; the status is 1 if it has a defect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", choices=["interrupts", "memory", "growth", "dask"])
    parser.add_argument("names", nargs="*", metavar="ESTIMATOR", help="all by default")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.3, 1.5])
    parser.add_argument("--limits", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--size", choices=SIZES, help='"large" for interrupts, else "middle"')
    parser.add_argument("--patience", type=float, default=60, help="seconds for a fit by memory")
    given = parser.parse_args()
    known = list(fits("small"))
    if unknown := set(given.names) - set(known):
        parser.error(f"ESTIMATOR: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    names = given.names or known
    if given.table == "interrupts":
        good = interrupts(names, given.delays, given.size or "large")
    elif given.table == "memory":
        good = memory(names, given.limits, given.size or "middle", given.patience)
    elif given.table == "growth":
        good = growth(names, given.repetitions)
    else:
        good = dask_clients()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
