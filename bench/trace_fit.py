"""The files of the package that a fit passes through, in the order of their first calls.

``python bench/trace_fit.py GEMClassifier LDG`` fits small problems twice and traces the second fit:
what is imported or computed once is left out. For each file it prints the first function called.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef

PACKAGE = f"{Path(ef.__file__).parent}/"
FITS: dict[str, Callable[[], Any]] = {
    "GEMClassifier": lambda: ef.GEMClassifier(),
    "LDG": lambda: ef.LDG(),
    "ReliableClassifier": lambda: ef.ReliableClassifier(LinearDiscriminantAnalysis()),
}


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Return 600 samples of 12 features in three classes."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    return rng.standard_normal((600, 12)) * (1 + y[:, None]) + y[:, None], y


def passed(run: Callable[[], Any]) -> tuple[dict[str, str], int]:
    """Files and their first functions, and how often a call went into a file already left."""
    first: dict[str, str] = {}
    returns, last = 0, ""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal returns, last
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(PACKAGE):
            return
        name = name.removeprefix(PACKAGE)
        returns += name != last and name in first
        first.setdefault(name, frame.f_code.co_name)
        last = name

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return first, returns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fits", nargs="*", metavar="FIT", help=f"of {list(FITS)}")
    X, y = problem()
    for name in parser.parse_args().fits or FITS:
        FITS[name]().fit(X, y)
        model = FITS[name]()
        files, returns = passed(lambda model=model: model.fit(X, y))
        print(f"{name}.fit: {len(files)} files, {returns} returns")
        for number, (file, function) in enumerate(files.items(), 1):
            print(f"{number:4} {file}: {function}")


if __name__ == "__main__":
    main()
