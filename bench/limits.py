"""Fits under Ctrl-C, with too little memory, many times over, and with lost Dask clients.

    python bench/limits.py interrupts     # seconds from SIGINT to KeyboardInterrupt, by estimator
    python bench/limits.py memory         # fits at ten limits of address space (ulimit -v)
    python bench/limits.py growth         # resident memory over 200 small fits
    python bench/limits.py dask           # a client closed in the middle, unknown partitions

Each fit runs in a process of its own. A line that ends in an exclamation mark is a defect: an end
without a Python error, more than a second after SIGINT, or memory that grows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import eigenfeat as ef
from eigenfeat import incomplete, ldg

LATE = 1.0  # seconds from SIGINT to the end of a fit


def rows(n: int, d: int, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes that differ in mean and covariance."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.standard_normal((n, d)) * (0.5 + rng.random((k, d)))[y]
    return X + 0.2 * rng.standard_normal((k, d))[y], y


SIZES = {"small": (200, 12), "middle": (1500, 150), "large": (20_000, 400)}  # rows and columns


def fits(size: str, only: str | None = None) -> dict[str, Callable[[], object]]:
    """Every estimator's fit by name: milliseconds each if "small", some seconds if "large"."""
    n, d = SIZES[size]
    large = size == "large"
    few = n // 10 if large else n
    X, y = rows(n, d, 3 if size == "small" else 10)
    columns = min(d, 40)
    # Made before anything is measured, and only where it is needed.
    many = (X, y)
    if large and only in ("ClassMoments", "FisherLDA", "RayleighPCA"):
        many = rows(40_000, 1200)
    pencil = _pencil(1500 if large and only == "generalized_eigh" else d)
    quadratics = _quadratics(4 * n if large and only == "certified_sign" else 100, columns)
    holes = np.where(
        np.random.default_rng(3).random((few, columns)) < 0.2, np.nan, X[:few, :columns]
    )
    shift = ldg.TransferLDG(), X[:few], y[:few], np.where(np.arange(few) % 7 < 4, 1, -1)
    reliable = incomplete.ReliableClassifier
    names: dict[str, Callable[[], object]] = {
        "ClassMoments": lambda: ef.ClassMoments().update(*many),
        "pair_directions": lambda: ef.pair_directions(
            ef.ClassMoments().update(X, y), ridge=0.5, solver="auto" if size == "small" else "full"
        ),
        "generalized_eigh": lambda: ef.generalized_eigh(*pencil),
        "GEM": lambda: ef.GEM().fit(X, y),
        "GEMClassifier": lambda: ef.GEMClassifier().fit(X, y),
        "GEMClassifierCV": lambda: ef.GEMClassifierCV().fit(X, y),
        "GEMEnsemble": lambda: ef.GEMEnsemble().fit(X, y),
        "MultinomialLogit": lambda: ef.MultinomialLogit(
            penalty=0, l2=1e-6 if large else 1e-3, tol=1e-9 if large else 1e-4
        ).fit(X, y),
        "CalibratedLeastSquares": lambda: ef.CalibratedLeastSquares().fit(X, y),
        "MulticlassSVM": lambda: ef.MulticlassSVM(C=100 if large else 1, tol=1e-6).fit(X, y),
        "MaxMarginShift": lambda: ef.MaxMarginShift().fit(
            *((X, y) if size != "middle" else (X[:200, :60], y[:200] % 3))
        ),
        "Autoencoder": lambda: ef.Autoencoder().fit(X),
        "LDG": lambda: ldg.LDG().fit(X, y),
        "KernelLDG": lambda: ldg.KernelLDG().fit(X[:few], y[:few]),
        "SparseLDG": lambda: ldg.SparseLDG().fit(X[:few], y[:few]),
        "DiscriminativeGaussian": lambda: ldg.DiscriminativeGaussian().fit(X[:few], y[:few]),
        "TransferLDG": lambda: shift[0].fit(*shift[1:3], sample_domain=shift[3]),
        "LocalFisher": lambda: ldg.LocalFisher().fit(X, y),
        "FisherLDA": lambda: ef.discriminant.FisherLDA().fit(*many),
        "RayleighPCA": lambda: ef.RayleighPCA().fit(many[0]),
        "VanishingComponents": lambda: ef.VanishingComponents().fit(
            X[:, :columns] if large else X[:, : columns // 2], y
        ),
        "LocalQDA": lambda: incomplete.LocalQDA().fit(X[:few], y[:few]).predict(X),
        "ReliableClassifier": lambda: (
            reliable(incomplete.LocalQDA(), reliability=0.9)
            .fit(X[:few, :columns], y[:few])
            .predict_early(X[:few, :columns])
        ),
        "MixtureCompletion": lambda: incomplete.MixtureCompletion().fit(holes, y[:few]),
        "ECTS": lambda: incomplete.ECTS().fit(X[:few], y[:few]),
        "certified_sign": lambda: ef.certified_sign(*quadratics),
    }
    return names


def _pencil(d: int) -> tuple[np.ndarray, np.ndarray]:
    A, B = np.random.default_rng(1).standard_normal((2, d, d)) / np.sqrt(d)
    return A @ A.T, np.eye(d) + B @ B.T


def _quadratics(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((n, d, d))
    return A + A.swapaxes(1, 2), rng.standard_normal((n, d)), rng.standard_normal(n), 1.0


# ---- children ------------------------------------------------------------------------------------


def child(name: str, size: str, mebibytes: float | None) -> None:
    """Fit and say how it ended, on standard output; with so much more address space, if given."""
    warnings.simplefilter("ignore")
    call = fits(size, name)[name]
    if size == "middle":
        fits("small")[name]()  # what is imported late, threads, and buffers of BLAS
    space = status_mebibytes("VmSize")
    if mebibytes is not None:
        limit = int((space + mebibytes) * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print("ready", flush=True)
    start = time.perf_counter()
    try:
        call()
        seconds = time.perf_counter() - start
        end = f"finished in {seconds:.2f} s, {status_mebibytes('VmPeak') - space:.0f} MiB"
    except KeyboardInterrupt:
        end = "interrupted"
    except Exception as error:  # MemoryError, or a defect
        end = f"{type(error).__name__}: {str(error)[:90]}"
    print(end, flush=True)
    # Without Python's tidying up, which is not what is measured.
    os._exit(0)


def status_mebibytes(field: str) -> float:
    """A size from what Linux says of this process: VmSize, VmPeak, VmRSS."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def start_child(name: str, *options: str) -> subprocess.Popen[str]:
    """A process that is about to fit."""
    return subprocess.Popen(
        [sys.executable, __file__, "child", name, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str], seconds: float) -> str:
    """What the process prints next, or nothing."""
    assert process.stdout is not None
    there, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline().strip() if there else ""


# ---- Ctrl-C --------------------------------------------------------------------------------------


def interrupts(names: list[str], delays: list[float]) -> bool:
    """Print how long each fit goes on after SIGINT; whether all ended in time."""
    good = True
    for name in names:
        found = []
        for delay in delays:
            process = start_child(name)
            if first_line(process, 120) != "ready":
                found.append("did not start !")
                good = False
            else:
                end = first_line(process, delay)
                if end:
                    found.append(end)
                else:
                    start = time.perf_counter()
                    process.send_signal(signal.SIGINT)
                    end = first_line(process, 30)
                    seconds = time.perf_counter() - start
                    late = seconds > LATE or end != "interrupted"
                    good &= not late
                    found.append(
                        f"{seconds:.2f} s{f' ({end or None})' if end != 'interrupted' else ''}"
                        f"{' !' if late else ''}"
                    )
            process.kill()
            process.communicate()
        print(f"{name:24} " + "  ".join(f"{text:>12}" for text in found), flush=True)
    return good


# ---- memory --------------------------------------------------------------------------------------


def memory(names: list[str], steps: int) -> bool:
    """Fit at `steps` limits between what a small fit has left and what this one takes."""
    good = True
    for name in names:
        whole = limited(name, None)
        if not whole.startswith("finished"):
            print(f"{name:24} {whole} !", flush=True)
            good = False
            continue
        needed = float(whole.split()[-2])
        ends = [limited(name, needed * step / steps) for step in range(steps)]
        for i, end in enumerate(ends):
            if end.startswith("finished"):
                ends[i] = "ok"
            elif end.startswith("MemoryError"):
                ends[i] = "MemoryError"
            else:
                ends[i] = f"{end} !"
                good = False
        print(f"{name:24} {needed:5.0f} MiB: " + ", ".join(ends), flush=True)
    return good


def limited(name: str, mebibytes: float | None) -> str:
    """How a fit ends that gets so much address space, in one line."""
    options = [] if mebibytes is None else ["--mebibytes", str(mebibytes)]
    process = start_child(name, "--size", "middle", *options)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "not done in 60 s"
    lines = out.splitlines()
    if process.returncode == 0 and len(lines) == 2:
        return lines[1]
    last = (err.strip().splitlines() or [""])[-1]
    return f"status {process.returncode}: {last.strip()[:120]}"


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
            f"{name:24} {before:8.1f} MiB, {middle - before:+6.1f}, {after - middle:+6.1f}"
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
    parser.add_argument("table", choices=["interrupts", "memory", "growth", "dask", "child"])
    parser.add_argument("names", nargs="*", metavar="ESTIMATOR", help="all by default")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.3, 1.5])
    parser.add_argument("--limits", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--size", choices=SIZES, default="large", help=argparse.SUPPRESS)
    parser.add_argument("--mebibytes", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table == "child":
        child(given.names[0], given.size, given.mebibytes)
    known = list(fits("small"))
    if unknown := set(given.names) - set(known):
        parser.error(f"ESTIMATOR: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    names = given.names or known
    if given.table == "interrupts":
        good = interrupts(names, given.delays)
    elif given.table == "memory":
        good = memory(names, given.limits)
    elif given.table == "growth":
        good = growth(names, given.repetitions)
    else:
        good = dask_clients()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
