"""The walls between the rooms: who may use what, checked by reading the sources.

Three tables hold the rules: `PYTHON_ROOMS`, `CPP_ROOMS` and `TEXT_RULES`. A new file either fits a
room there already or the test says that it has none.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "python/eigenfeat/"

pytestmark = pytest.mark.skipif(
    not ((ROOT / PACKAGE).is_dir() and (ROOT / "cpp").is_dir()), reason="the sources are not here"
)


# ---- the tables (in a pattern, * stands for slashes, too) ----------------------------------------


@dataclass(frozen=True)
class Room:
    """Files below python/eigenfeat, and what they may import besides the standard library."""

    name: str
    files: tuple[str, ...]
    rooms: frozenset[str]
    libraries: frozenset[str] = frozenset()
    lazy: frozenset[str] = frozenset()  # libraries that are imported inside functions only


PYTHON_ROOMS = (
    Room("front door", ("__init__.py",), rooms=frozenset({"foundation", "estimators", "outer"})),
    Room(
        "foundation",
        (
            *("moments.py", "eigh.py", "pencils.py", "pairs.py", "contrasts.py", "expansion.py"),
            *("features.py", "layers.py", "local_means.py", "trust_region.py", "persist.py"),
            *("blocks.py", "reductions.py"),
            "_[!_]*.py",
        ),
        rooms=frozenset({"_core", "foundation"}),
        libraries=frozenset({"numpy"}),
        lazy=frozenset({"rich", "threadpoolctl"}),
    ),
    Room("aeon", ("*/aeon.py",), frozenset(), frozenset({"numpy", "sklearn", "aeon"})),
    Room(
        "estimators",
        (
            *("gem*.py", "linear.py", "logistic.py", "calibrated*.py", "clusters.py"),
            *("rayleigh*.py", "discriminant.py", "targets.py", "cores.py", "splits.py"),
            *("row_weights.py", "out_of_core.py", "class_components.py"),
            *("spatial_filters.py", "text_columns.py"),
            *("ldg/*", "incomplete/*", "maxmargin/*"),
        ),
        rooms=frozenset({"foundation", "estimators"}),
        libraries=frozenset({"numpy", "scipy", "sklearn", "joblib"}),
        lazy=frozenset({"rich", "threadpoolctl"}),
    ),
    Room(
        "outer",
        (
            "plot*.py",
            "report*.py",
            "distributed/*",
            "datasets.py",
            "demo*.py",
            "speech.py",
            "saving*.py",
            "onnx_export.py",
            "reproduce/*",
            "tables/*",
            "cli*.py",
            "__main__.py",
        ),
        rooms=frozenset({"front door", "foundation", "estimators", "outer"}),
        libraries=frozenset({"numpy", "scipy", "sklearn", "joblib"}),
        lazy=frozenset(
            "matplotlib dask distributed pandas pyarrow rich threadpoolctl onnx".split()  # noqa: SIM905
        ),
    ),
)

# From the bottom up: a room may include only those before it, be it through a private header.
CPP_ROOMS = (
    *("view", "vector", "status", "tier", "scratch", "processors", "parallel", "lapack", "moments"),
    *("pencil", "expansion", "features", "logit", "local_means", "local_affinity"),
    *("prefix_gaussian", "trust_region", "box", "dominance", "crammer_singer", "sparse_rows"),
)

# From the bottom up: a shelf of cpp/src includes private headers of those before it, and its own.
CPP_SHELVES = "kernels base moments pencil expansion logit neighbours regions svm".split()  # noqa: SIM905

# With a letter for the type before and an underscore after.
FORTRAN = (
    "gemm|gemv|ger|syr|symm|symv|syrk|syr2k|trmm|trmv|trsm|trsv|dot|axpy|scal|nrm2|copy|swap|asum|"
    "latrd|potrf|potrs|potri|posv|trtri|trtrs|sygst|sygv|sygvd|sygvx|syev|syevd|syevr|syevx|sytrd|sytrf|"
    "ormtr|orgtr|stedc|stev|stevd|stevr|stebz|stein|geqrf|geqp3|ormqr|orgqr|getrf|getrs|gesv|gesvd|gesdd|"
    "gels|gelsd|gelsy|lange|lansy|lacpy|laset|larfg|pstrf|pocon"
)

# The names are put together here, so that this file keeps its own rule.
HOSTS = [f"{name}.org" for name in ("pypi", "pythonhosted", "debian", "npmjs")] + ["crates" + ".io"]
PATHS_OF_ONE_MACHINE = r"(?<![\w.$}\-])/(?:work|root|opt/pypi|opt/wheels)/"


@dataclass(frozen=True)
class TextRule:
    """No line of `files`, but for those in `allowed`, may match `pattern`."""

    name: str
    files: tuple[str, ...]
    pattern: str
    allowed: str = ""
    comments: bool = False  # whether C++ comments are looked at, too


CPP = "cpp/*"
BINDINGS = "python/bindings/*"
TEXT_RULES = (
    TextRule("the core knows no Python", (CPP,), r"pybind11|\bpy::|Python\.h|\bPyObject\b"),
    TextRule(
        "the core prints nothing",
        (CPP,),
        r"<iostream>|\bstd::c(?:out|err|log)\b|\b(?:v?f?printf|f?puts|putchar)\s*\(",
    ),
    TextRule(
        "OpenMP stays in parallel.cpp",
        (CPP, BINDINGS),
        r"<omp\.h>|#\s*pragma\s+omp\b|\bomp_\w+\s*\(",
        allowed="cpp/src/base/parallel.cpp",
    ),
    TextRule("threads start in base", ("cpp/src/[!b]*", BINDINGS), r"\bstd::thread\s*[({]"),
    TextRule(
        "BLAS threads are set in parallel.cpp",
        (CPP, BINDINGS),
        r"openblas_[gs]et_num_threads",
        allowed="cpp/src/base/parallel.cpp",
    ),
    TextRule(
        "Fortran names stay in lapack.cpp",
        (CPP, BINDINGS),
        rf"\b(?:scipy_)?[sd](?:{FORTRAN})_\b|\bEIGENFEAT_FORTRAN\b|\bcblas_|\bLAPACKE_",
        allowed="cpp/src/base/lapack.cpp",
    ),
    TextRule(
        "NumPy arrays stay in numpy_views.hpp",
        (BINDINGS,),
        r"\b(?:py|pybind11)::array|pybind11/numpy\.h",
        allowed="python/bindings/numpy_views.hpp",
    ),
    TextRule(
        "Python's lock is given up in unlocked.hpp, which does not abort at exit",
        (BINDINGS,),
        r"gil_scoped_release|PyEval_SaveThread|Py_BEGIN_ALLOW_THREADS",
        allowed="python/bindings/unlocked.hpp",
    ),
    TextRule("bindings do not reach LAPACK", (BINDINGS,), r"eigenfeat/lapack\.hpp"),
    TextRule(
        "bindings do not loop over data",
        ("python/bindings/bind_*.cpp", "python/bindings/module.cpp"),
        r"\b(?:for|while)\s*\(",
    ),
    TextRule(
        "users of the core include public headers only",
        (BINDINGS, "tests/cpp/*", "bench/cpp/*"),
        r"#\s*include\s*\"[^\"]*(?:\.\./|cpp/|src/)",
    ),
    TextRule(
        "the reference uses none of the kernels that it checks",
        ("tests/cpp/reference/*",),
        r"#\s*include\s*\"(?!eigenfeat/(?:view|vector)\.hpp\"|reference/)",
    ),
    TextRule(
        "floating point stays strict and portable",
        ("*CMakeLists.txt", "CMakePresets.json", "pyproject.toml"),
        r"^[^#]*(?:-ffast-math|-Ofast|-march=native)",
    ),
    TextRule(
        "no file names a registry's host or a path of one machine",
        ("*",),
        "|".join([PATHS_OF_ONE_MACHINE, *map(re.escape, HOSTS)]),
        comments=True,
    ),
)

MAX_LINES = 420  # "about 400"


# ---- reading -------------------------------------------------------------------------------------


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


# ---- any text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.name)
def test_text(rule: TextRule) -> None:
    text = read if rule.comments else read_code
    fail_on(
        [
            f"{name}:{number}: {rule.name}: {line.strip()}"
            for name in matching(*rule.files)
            if name != rule.allowed
            for number, line in enumerate(text(name).splitlines(), 1)
            if re.search(rule.pattern, line)
        ]
    )


def test_files_are_short() -> None:
    folders = ("cpp", "python", "tests", "bench")
    code = matching(*(f"{folder}/*.{end}" for folder in folders for end in ("py", "pyi", "[ch]pp")))
    lengths = {name: len(read(name).splitlines()) for name in code}
    fail_on([f"{name} has {n} lines" for name, n in lengths.items() if n > MAX_LINES])


def test_public_headers_open_with_a_comment() -> None:
    headers = matching("cpp/include/eigenfeat/*.hpp")
    fail_on([name for name in headers if not read(name).lstrip().startswith(("//", "/*"))])


# ---- C++ -----------------------------------------------------------------------------------------


def test_cpp_rooms_include_only_rooms_above() -> None:
    """Follow the includes of a room, through private headers, to all public ones it needs."""
    includes: dict[str, set[str]] = {}
    for name in matching("cpp/include/eigenfeat/*.hpp", "cpp/src/*/*"):
        found = re.findall(r'^\s*#\s*include\s*"(?:\w+/)?(\w+)\.hpp"', read_code(name), re.M)
        includes.setdefault(Path(name).stem, set()).update(found)
    headers = {Path(name).stem for name in matching("cpp/include/eigenfeat/*.hpp")}
    broken = [f"{room}.hpp has no place in CPP_ROOMS" for room in sorted(headers - {*CPP_ROOMS})]
    for index, room in enumerate(CPP_ROOMS):
        needed, todo = {room}, [room]
        while todo:
            new = includes.get(todo.pop(), set()) - needed
            needed |= new
            todo += new
        broken += [f"{room} must not need {low}" for low in CPP_ROOMS[index + 1 :] if low in needed]
    fail_on(broken)


def test_cpp_shelves_include_only_shelves_below() -> None:
    broken = []
    for name in matching("cpp/src/*"):
        shelf = name.split("/")[2]
        allowed = {"eigenfeat", *CPP_SHELVES[: CPP_SHELVES.index(shelf) + 1]}
        found = re.findall(r'^\s*#\s*include\s*"([^"]*)"', read_code(name), re.M)
        broken += [f"{name} must not include {f}" for f in found if f.split("/")[0] not in allowed]
    fail_on(broken)


# ---- Python --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """`name` taken from `module`, which is absolute and, if it is ours, as deep as it goes."""

    module: str
    name: str
    line: int
    lazy: bool


def any_private(*names: str) -> bool:
    return any(name.startswith("_") and not name.endswith("__") for name in names)


def module_of(path: str) -> str:
    name = path.removeprefix("python/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


@cache
def modules() -> dict[str, str]:
    return {module_of(path): path for path in matching(f"{PACKAGE}*.py")}


def room_of(module: str) -> str | None:
    if module == "eigenfeat._core":
        return "_core"
    path = modules().get(module, "").removeprefix(PACKAGE)
    rooms = (room.name for room in PYTHON_ROOMS if any(fnmatch(path, f) for f in room.files))
    return next(rooms, None)


def imports(path: str) -> Iterator[Import]:
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package.pop()

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, lazy)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                if inner in modules() or inner == "eigenfeat._core":
                    yield Import(inner, "", node.lineno, lazy)
                else:
                    yield Import(module, alias.name, node.lineno, lazy)
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            children = iter(node.orelse)  # what only the type checker reads is not needed to run
        lazy = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in children:
            yield from visit(child, lazy)

    yield from visit(ast.parse(read(path), path), False)


def violations(path: str, room: Room) -> Iterator[str]:
    part = module_of(path).split(".")[:2]  # eigenfeat.ldg, whose insides are its own
    for found in imports(path):
        where = f"{path}:{found.line}: {room.name}"
        library = found.module.partition(".")[0]
        if library == "eigenfeat":
            target = room_of(found.module)
            if len(part) == 2 and found.module.split(".")[:2] == part:
                continue
            if target not in room.rooms:
                yield f"{where} must not import {found.module} ({target or 'which has no room'})"
            last = found.module.rpartition(".")[2] if target == "estimators" else ""
            if any_private(last, found.name):
                yield f"{where} reaches for a private part: {found.module} {found.name}"
        elif library in sys.stdlib_module_names | room.libraries:
            continue
        elif library not in room.lazy:
            yield f"{where} must not import {library}"
        elif not found.lazy:
            yield f"{where} must import {library} inside functions"


@pytest.mark.parametrize("room", PYTHON_ROOMS, ids=lambda room: room.name)
def test_python_imports(room: Room) -> None:
    paths = [path for module, path in modules().items() if room_of(module) == room.name]
    fail_on([line for path in paths for line in violations(path, room)])


def test_every_python_file_has_a_room() -> None:
    fail_on([f"{path} has no room" for module, path in modules().items() if not room_of(module)])


def test_front_doors_hold_names_only() -> None:
    """An __init__.py imports, and sets names such as __all__ and __version__: no more."""
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Try, ast.If, ast.Expr)
    fail_on(
        [
            f"{path}:{node.lineno}: only public names live here"
            for path in matching(f"{PACKAGE}*__init__.py")
            for node in ast.parse(read(path), path).body
            if not isinstance(node, allowed)
            and getattr(node, "name", "") not in {"__getattr__", "__dir__"}
        ]
    )


def test_benchmarks_use_the_public_api() -> None:
    fail_on(
        [
            f"{path}:{found.line}: {found.module} {found.name} is private"
            for path in matching("bench/*.py")
            for found in imports(path)
            if found.module.startswith("eigenfeat")
            and any_private(*found.module.split("."), found.name)
        ]
    )
