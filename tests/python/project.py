"""The project's files, as its checks read them."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def project_files() -> tuple[str, ...]:
    """List the files that git tracks or would track; without git, all but builds and caches."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
        files = [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        files = []
    if not files:
        apart = re.compile(r"(^|/)(\.(?!ci/)[^/]*|__pycache__|build|dist|venv)/")
        found = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
        files = [name for name in found if not apart.search(name)]
    return tuple(sorted(files))


def matching(*patterns: str) -> list[str]:
    return [f for f in project_files() if any(fnmatch(f, pattern) for pattern in patterns)]


@cache
def read(name: str) -> str:
    return (ROOT / name).read_bytes().decode("utf-8", errors="replace")


def listed() -> set[tuple[str, str]]:
    """Return (module, name) of everything that has an API page."""
    found, module = set(), ""
    for page in matching("docs/api/*.rst"):
        for line in read(page).splitlines() if not page.endswith("index.rst") else ():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   [\w.]+", line):
                home, _, name = f"{module}.{line.strip()}".rpartition(".")
                found.add((home, name))
    return found


@cache
def read_code(name: str) -> str:
    """Text of a file; if it is C++, without comments but with every line in its place."""
    if not name.endswith((".cpp", ".hpp")):
        return read(name)
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return token.sub(lambda m: m[0] if m[0][0] != "/" else "\n" * m[0].count("\n"), read(name))


def fail_on(broken: list[str]) -> None:
    if broken:
        pytest.fail("\n".join(dict.fromkeys(broken)), pytrace=False)
