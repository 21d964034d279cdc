"""What `early_reliability.py` has written, as tables: by rule, set by set, and against the thesis.

    python bench/early_summary.py bench/early_reliability.csv --markdown FILE.md

The first table counts the sets on which a rule is below tau by more than two standard errors. The
second says, at equal realised agreement, which rule decides earlier: times are read off each rule's
curve of agreement against time over all tau, linearly between its points. The rest are all figures.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from early_reliability import TAUS, Line, read_lines

AGREEMENTS = (0.9, 0.95, 0.99)
BEFORE = ("LDA, box, raw", "LDA, quadratic, raw")
NOW = "LDA, pairwise, raw"


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--markdown", type=Path, required=True)
    options = parser.parse_args()
    lines = read_lines(options.file)
    parts = [
        "# Early decisions, set by set\n",
        "Models are fitted to the official training part and tried on samples of the test part. "
        "Raw rules (`correct=False`) are tried at equally spaced times, corrected rules (with "
        "confidence 0.9, the default) at the times of the fit, at most 48.\n",
        "In the tables by rule, each cell has the share of early labels that are those of the "
        "complete series, ± the standard error of a binomial share at tau, and the mean time of "
        "decision as a share of the series. A share is **bold** if it is below tau by more than "
        "two standard errors.\n",
        "## How many sets are below tau by more than two standard errors\n",
        "Each cell has the number of sets and the mean time of decision over the sets.\n",
        counts(lines),
        "## Earlier at equal realised agreement\n",
        earlier(lines),
    ]
    for rule in dict.fromkeys(line.rule for line in lines):
        parts += [f"## {rule}\n", by_set([line for line in lines if line.rule == rule])]
    options.markdown.write_text("\n".join(parts))


def counts(lines: list[Line]) -> str:
    """By rule and tau: sets that fall short, of how many, and the mean time over sets."""
    cells: dict[tuple[str, float], list[Line]] = defaultdict(list)
    for line in lines:
        cells[line.rule, line.tau].append(line)
    out = [_row("rule", "sets", *TAUS), _row(*["---"] * (2 + len(TAUS)))]
    for rule in dict.fromkeys(line.rule for line in lines):
        texts = []
        for tau in TAUS:
            some = cells[rule, tau]
            short = sum(line.short for line in some)
            number = f"**{short}**" if short else "0"
            texts.append(f"{number}, {100 * np.mean([line.time for line in some]):.0f}%")
        out.append(_row(rule, len({line.set for line in lines if line.rule == rule}), *texts))
    return "\n".join(out) + "\n"


def earlier(lines: list[Line]) -> str:
    """Sets on which `NOW` decides before the thesis's rules, at the same agreement."""
    curves: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        curves[line.set, line.rule].append(line)
    out = []
    for before in BEFORE:
        out += [
            f"{NOW} against {before}: share of the series after which the agreement is reached\n",
            _row("set", *AGREEMENTS),
            _row(*["---"] * 4),
        ]
        wins = dict.fromkeys(AGREEMENTS, 0)
        names = [s for s, rule in curves if rule == before and (s, NOW) in curves]
        for name in names:
            texts = []
            for wanted in AGREEMENTS:
                ours, theirs = (reached(curves[name, rule], wanted) for rule in (NOW, before))
                wins[wanted] += ours < theirs
                texts.append(f"{100 * ours:.0f}% against {100 * theirs:.0f}%")
            out.append(_row(name, *texts))
        total = [f"{wins[wanted]} of {len(names)}" for wanted in AGREEMENTS]
        out += [_row("**earlier on**", *total), ""]
    return "\n".join(out) + "\n"


def reached(curve: list[Line], wanted: float) -> float:
    """The least time at which the curve has the agreement; at the end everything agrees."""
    points = sorted([(line.time, line.agreement) for line in curve] + [(1.0, 1.0)])
    last_time, last = 0.0, 0.0
    for time, agreement in points:
        if agreement >= wanted:
            if last >= wanted or agreement == last or last_time == 0.0:
                return time
            return last_time + (time - last_time) * (wanted - last) / (agreement - last)
        if agreement >= last:
            last_time, last = time, agreement
    return 1.0


def by_set(lines: list[Line]) -> str:
    """Agreement with its standard error at tau, and mean time; bold where it falls short."""
    cells = {(line.set, line.tau): line for line in lines}
    out = [_row("set (training, test rows)", *TAUS), _row(*["---"] * (1 + len(TAUS)))]
    for name in dict.fromkeys(line.set for line in lines):
        some = cells[name, TAUS[0]]
        texts = []
        for tau in TAUS:
            line = cells[name, tau]
            text = f"{line.agreement:.3f}"
            text = f"**{text}**" if line.short else text
            texts.append(f"{text} ± {line.standard_error:.3f}, {100 * line.time:.0f}%")
        out.append(_row(f"{name} ({some.training_rows}, {some.rows})", *texts))
    return "\n".join(out) + "\n"


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


if __name__ == "__main__":
    main()
