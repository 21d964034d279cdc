"""What `early.py` has written, as a table of harmonic means, and mean ranks of some classifiers.

    python bench/early_ranks.py FILE.csv [FILE.csv ...] --classifiers A B C

Later files overwrite earlier ones. Ranks are over the sets on which all of the classifiers have a
figure; which sets these are, and which are missing and why, is said below the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from early import Line, read_lines


def main() -> None:
    """Print the table, the ranks and what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--classifiers", nargs="+", help="all that are there by default")
    options = parser.parse_args()
    found = {
        (line.problem, line.classifier): line for path in options.files for line in read_lines(path)
    }
    names = options.classifiers or list(dict.fromkeys(name for _, name in found))
    sets = sorted({problem for problem, _ in found})
    print(table(found, sets, names))
    print(ranks(found, sets, names))
    for name in names:
        print(f"\n{name}: {seconds(found, sets, name)}")
        for problem in sets:
            line = found.get((problem, name))
            if line is None or not np.isfinite(line.harmonic_mean):
                print(f"  {problem}: {'not run' if line is None else line.note}")


def table(found: dict[tuple[str, str], Line], sets: list[str], names: list[str]) -> str:
    """Harmonic means, sets down and classifiers across; the largest of a set is bold."""
    out = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for problem in sets:
        means = [_mean(found, problem, name) for name in names]
        best = np.nanmax(means) if np.isfinite(means).any() else np.nan
        texts = []
        for mean in means:
            text = f"{mean:.3f}".removeprefix("0") if np.isfinite(mean) else "-"
            texts.append(f"**{text}**" if round(mean, 3) == round(best, 3) else text)
        out.append(f"| {problem} | " + " | ".join(texts) + " |")
    return "\n".join(out)


def ranks(found: dict[tuple[str, str], Line], sets: list[str], names: list[str]) -> str:
    """Mean ranks, 1 for the largest harmonic mean, where every classifier has one."""
    means = np.array([[_mean(found, problem, name) for name in names] for problem in sets])
    whole = np.isfinite(means).all(axis=1)
    if not whole.any():
        return "no set has all"
    ranked = rankdata(-means[whole], axis=1).mean(axis=0)
    told = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(names, ranked, strict=True))
    which = ", ".join(np.array(sets)[whole])
    return f"mean ranks on {whole.sum()} sets: {told}\n({which})"


def seconds(found: dict[tuple[str, str], Line], sets: list[str], name: str) -> str:
    """What fits and rows took, where there are figures."""
    lines = [found[s, name] for s in sets if np.isfinite(_mean(found, s, name))]
    if not lines:
        return "no figures"
    fits, rows = [x.fit_seconds for x in lines], [1e3 * x.row_seconds for x in lines]
    return (
        f"{len(lines)} sets; seconds to fit {min(fits):.2g} to {max(fits):.2g}, median "
        f"{np.median(fits):.2g}; milliseconds a row {min(rows):.2g} to {max(rows):.2g}, median "
        f"{np.median(rows):.2g}"
    )


def _mean(found: dict[tuple[str, str], Line], problem: str, name: str) -> float:
    line = found.get((problem, name))
    return np.nan if line is None else line.harmonic_mean


if __name__ == "__main__":
    main()
