"""Dependencies between the parts of the code: who may use what, checked by reading the sources.

Tables hold the rules: `RANKS` and `LIBRARIES` for Python, `CPP_ROOMS` and `CPP_SHELVES` for C++,
`TEXT_RULES` for both. A new folder needs a place in them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from project import ROOT, fail_on, matching, read, read_code

PACKAGE = "python/eigenfeat/"

pytestmark = pytest.mark.skipif(
    not ((ROOT / PACKAGE).is_dir() and (ROOT / "cpp").is_dir()), reason="the sources are not here"
)


# ---- the tables (in a pattern, * stands for slashes, too) ----------------------------------------


# From the bottom up: a folder of python/eigenfeat imports folders of lower ranks, and itself.
RANKS = tuple(
    tuple(names.split())
    for names in (
        "_core",
        "_base",
        "moments expansion neighbours regions",
        "pencils samples",
        "linear",
        "signals",
        "gem rayleigh ldg early maxmargin embedding",
        "tables",
        "io plotting",
        "demo report",
        "cli",
        "__main__ __init__ exceptions",
    )
)
RANK_OF = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}

# From the bottom up: folders within a folder; "" stands for files directly in the folder.
INNER_RANKS = {"ldg": ("_solving", ""), "gem": ("_randomized", "")}

# Libraries other than the standard library, and the lowest folder that may import each: at the top
# of a file (`LIBRARIES`), or in functions only (`LAZY`).
LIBRARIES = {"numpy": "_base", "joblib": "_base", "scipy": "pencils", "sklearn": "samples"}
LIBRARIES |= {"click": "cli", "lazy_loader": "_base"}
LAZY = {
    **{"rich": "demo", "threadpoolctl": "_base", "scipy": "_base"},
    **{"matplotlib": "plotting", "dask": "samples", "pandas": "samples"},
    **{"pyarrow": "io", "onnx": "io", "skops": "io"},
    **{"mne": "signals"},
}

MAX_PARAMETERS = 12  # of an estimator

# Private attributes of other libraries that have no public counterpart.
LIBRARY_ATTRIBUTES = {"_replace", "_asdict", "_getframe", "_rand", "_meta", "_meta_nonempty"}
LIBRARY_ATTRIBUTES |= {"_baseline_prediction", "_predictors"}  # of histogram gradient boosting
LIBRARY_ATTRIBUTES |= {"_callback_fit_ctx", "_get_param_names", "_validate_params"}

# Folders of bench, and what they may use besides the public API.
BENCH_MAY = {"papers": "eigenfeat._base."}

# From the bottom up: a room, which is a public header, may include only rooms before it, also
# through private headers.
CPP_ROOMS = (
    *("view", "vector", "status", "tier_kind", "tier", "scratch", "processors", "parallel"),
    *("lapack", "moments"),
    *("pencil", "expansion", "features", "column_features", "logit", "lbfgs", "layer_training"),
    *("local_means", "local_affinity", "prefix_gaussian", "trust_region", "box", "dominance"),
    *("crammer_singer", "hinge_envelope", "sparse_rows"),
    *("tangent_space", "convolutions"),
)

# From the bottom up: a shelf, which is a folder of cpp/src, includes private headers of shelves
# before it, and its own.
CPP_SHELVES = "kernels base moments pencil expansion logit training neighbours regions svm".split()  # noqa: SIM905
CPP_SHELVES += ["signals"]

# Routines of BLAS and LAPACK; a letter for the type precedes the name, an underscore follows it.
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
    """No line of `files`, except for those in `allowed`, may match `pattern`."""

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
    TextRule(
        "threads are OpenMP's",
        (CPP, BINDINGS),
        r"\bstd::(?:thread\s*[({]|async\b)|\bpthread_create\b",
    ),
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
    TextRule(
        "messages say what they got",
        ("python/eigenfeat/*.py",),
        r"\bgot (?:others|some|another)\b(?! that)",
        allowed="python/eigenfeat/io/delimited.py",
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


def test_public_headers_open_with_a_comment() -> None:
    headers = matching("cpp/include/eigenfeat/*.hpp")
    fail_on([name for name in headers if not read(name).lstrip().startswith(("//", "/*"))])


# ---- C++ -----------------------------------------------------------------------------------------


def test_cpp_rooms_include_only_rooms_below() -> None:
    """Follow the includes of a room, through private headers, to all public headers it needs."""
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
    """`name` imported from `module`; `name` is empty if a module itself is imported."""

    module: str
    name: str
    line: int
    lazy: bool  # inside a function
    typing: bool  # read by type checkers alone


def any_private(*names: str) -> bool:
    return any(name.startswith("_") and not name.endswith("__") for name in names)


def module_of(path: str) -> str:
    name = path.removeprefix("python/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


@cache
def modules() -> dict[str, str]:
    return {module_of(path): path for path in matching(f"{PACKAGE}*.py")}


def folder_of(module: str) -> str:
    """The folder of a module, or the name of a module that is in no folder of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def inner_of(module: str) -> str:
    """The folder within a folder in which a module lies."""
    folder, inner = folder_of(module), [*module.split("."), "", ""][2]
    return inner if f"{PACKAGE}{folder}/{inner}/__init__.py" in modules().values() else ""


def imports(path: str) -> Iterator[Import]:
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package.pop()

    def visit(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, lazy, typing)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                if inner in modules() or inner == "eigenfeat._core":
                    yield Import(inner, "", node.lineno, lazy, typing)
                else:
                    yield Import(module, alias.name, node.lineno, lazy, typing)
        lazy = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy, typing or (checked and child not in node.orelse))

    yield from visit(ast.parse(read(path), path), False, False)


def violations(path: str) -> Iterator[str]:
    folder = folder_of(module_of(path))
    rank = RANK_OF[folder]
    for found in imports(path):
        if found.typing:
            continue
        where = f"{path}:{found.line}"
        library = found.module.partition(".")[0]
        if library == "eigenfeat":
            target = folder_of(found.module)
            if target == "__init__":
                yield f"{where} must import {found.name} from the file that defines it"
            elif target != folder and RANK_OF.get(target, len(RANKS)) >= rank:
                yield f"{where}: {folder} must not import {found.module}, which is not below it"
            inside = [] if target in {"_base", "_core"} else found.module.split(".")[2:]
            if target != folder and any_private(*inside, found.name):
                yield f"{where} imports a private name: {found.module} {found.name}"
        elif library in sys.stdlib_module_names:
            pass
        elif not (
            (library in LIBRARIES and rank >= RANK_OF[LIBRARIES[library]])
            or (found.lazy and library in LAZY and rank >= RANK_OF[LAZY[library]])
        ):
            yield f"{where}: {folder} must not import {library} here"


def foreign_attributes(path: str) -> list[str]:
    """Private attributes that a file reads from objects whose class another file defines.

    A name that the file itself defines counts as its own, and so does what it reads from `self`,
    `cls` and `super()`.
    """
    tree = ast.parse(read(path), path)
    own = set(LIBRARY_ATTRIBUTES)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr if ast.unparse(node.value) in {"self", "cls"} else "")
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and any_private(node.attr) and node.attr not in own
        if ast.unparse(node.value) not in {"self", "cls", "super()"}
    ]


def test_no_private_attributes_of_other_files() -> None:
    fail_on([found for path in modules().values() for found in foreign_attributes(path)])


def test_every_folder_has_a_rank() -> None:
    fail_on([f"{path} has no rank" for m, path in modules().items() if folder_of(m) not in RANK_OF])


@pytest.mark.parametrize("folder", [folder for folder in RANK_OF if folder != "_core"])
def test_python_imports(folder: str) -> None:
    paths = [path for module, path in modules().items() if folder_of(module) == folder]
    fail_on([line for path in paths if folder != "__init__" for line in violations(path)])


@pytest.mark.parametrize("folder", INNER_RANKS)
def test_folders_within_a_folder(folder: str) -> None:
    """Each folder in `INNER_RANKS` imports only folders before it, and no folder is missing."""
    ranks = INNER_RANKS[folder]
    own = {m: path for m, path in modules().items() if folder_of(m) == folder}
    broken = [f"{m} has no place in INNER_RANKS" for m in own if inner_of(m) not in ranks]
    for module, path in own.items() if not broken else ():
        broken += [
            f"{path}:{found.line} must not import {found.module}"
            for found in imports(path)
            if not found.typing
            if folder_of(found.module) == folder and found.module.startswith("eigenfeat.")
            if ranks.index(inner_of(found.module)) > ranks.index(inner_of(module))
        ]
    fail_on(broken)


def needs() -> dict[str, set[str]]:
    """The files that each file imports, in functions and for type checkers as well."""
    return {
        module: {found.module for found in imports(path)} & modules().keys() - {module, "eigenfeat"}
        for module, path in modules().items()
        if module != "eigenfeat"
    }


def test_imports_have_no_cycle() -> None:
    """Follow all imports, including those in functions and of types: none leads back."""
    left = needs()
    while free := {module for module, others in left.items() if not others & left.keys()}:
        for module in free:
            del left[module]
    fail_on([f"{module} is in a cycle of imports, or imports one" for module in left])


def defined(path: str) -> set[str]:
    """The names of a Python file's functions and classes, and of methods after a dot."""
    names = set()
    for node in ast.parse(read(path), path).body:
        names.add(getattr(node, "name", ""))
        if isinstance(node, ast.ClassDef):
            names.update(f".{method.name}" for method in node.body if hasattr(method, "name"))
            names.update(f"{node.name}{name}" for name in names.copy() if name.startswith("."))
    return names


def test_equations_name_what_computes_them() -> None:
    """Each file of the table exists and defines the names that follow it."""
    lines = read("docs/equations.md").splitlines()
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("| ")][1:]
    broken = [f"{row[0].strip()}: no function is named" for row in rows if ": `" not in row[2]]
    for entry in (entry for row in rows for cell in row[2:] for entry in cell.split(";")):
        if not entry.strip():
            continue
        name, *functions = re.findall(r"`([^`]+)`", entry)
        path = PACKAGE + name
        if name.endswith(".hpp"):
            path = f"cpp/include/eigenfeat/{name}"
        elif name.endswith(".cpp"):
            path = f"cpp/{name}"
        if not (ROOT / path).is_file():
            broken.append(f"{path} is not there")
            continue
        if path.endswith(".py"):
            known = defined(path)
            missing = [f for f in functions if f not in known and f".{f}" not in known]
        else:
            missing = [f for f in functions if not re.search(rf"\b{f}\b", read_code(path))]
        broken += [f"{path} defines no {function}" for function in missing]
        broken += [] if functions else [f"{path}: no function is named"]
    fail_on(broken)


def test_init_files_only_set_public_names() -> None:
    """An __init__.py only imports, and sets names such as __all__ and __version__."""
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
    """Only the papers' experiments, which check, write and report as the package, use `_base`."""
    fail_on(
        [
            f"{path}:{found.line}: {found.module} {found.name} is private"
            for path in matching("bench/*.py")
            for found in imports(path)
            if found.module.startswith("eigenfeat")
            and any_private(
                *found.module.removeprefix(BENCH_MAY.get(path.split("/")[1], "\0")).split("."),
                found.name,
            )
        ]
    )


def test_estimators_have_few_parameters() -> None:
    """At most `MAX_PARAMETERS`: those that are worth tuning."""
    counts = {
        f"{path}: {node.name}": len(method.args.args + method.args.kwonlyargs) - 1
        for path in matching(f"{PACKAGE}*.py")
        for node in ast.walk(ast.parse(read(path), path))
        if isinstance(node, ast.ClassDef) and "_parameter_constraints" in read(path)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    }
    assert counts[f"{PACKAGE}gem/gem.py: GEM"] == MAX_PARAMETERS
    fail_on([f"{name} has {count}" for name, count in counts.items() if count > MAX_PARAMETERS])


def test_sections_name_tests_that_exist() -> None:
    """Each file, and each test of a file, that `.ci/sections` names is there."""
    found = re.findall(r"(\w+/test_\w+\.py)(?:::(test_\w+))?", read(".ci/sections"))
    assert len(found) > 20
    for path, test in found:
        assert f"def {test}" in read(f"tests/python/{path}"), f"{path}::{test}"
