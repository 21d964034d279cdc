"""What `import eigenfeat` imports, and how the command line starts and is interrupted."""

import ast
import importlib
import pickle
import signal
import sys
from pathlib import Path

import pytest
from command_line import python

import eigenfeat

SLOW = ("numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "rich", "eigenfeat._core")


def loaded_by(code):
    """Which slow modules a program imports."""
    done = python(f"{code}\nimport sys; print([n for n in {SLOW} if n in sys.modules])")
    assert (done.returncode, done.stderr) == (0, "")
    return ast.literal_eval(done.stdout.splitlines()[-1])


def test_importing_the_package_imports_nothing_slow():
    assert loaded_by("import eigenfeat; dir(eigenfeat)") == []
    start = "from eigenfeat.cli.main import main\ntry: main({})\nexcept SystemExit: pass"
    for arguments in (["--help"], ["--version"], ["fit", "--help"]):
        assert loaded_by(start.format(arguments)) == []
    assert set(loaded_by("from eigenfeat import ClassMoments")) == {"numpy", "eigenfeat._core"}


STUBS = Path(eigenfeat.__file__).parent.glob("*/__init__.pyi")
LAZY = ["eigenfeat", *sorted(f"eigenfeat.{stub.parent.name}" for stub in STUBS)]


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_where_the_stub_says(package):
    package = importlib.import_module(package)
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    listed = [(node.module, alias) for node in tree.body for alias in node.names]
    assert sorted(alias.name for _, alias in listed) == sorted(package.__all__)
    for home, alias in listed:
        found = getattr(package, alias.name)
        assert alias.asname == alias.name  # or type checkers take it for private
        if home is None:
            assert found is importlib.import_module(f"{package.__name__}.{alias.name}")
            continue
        assert found is getattr(importlib.import_module(f"{package.__name__}.{home}"), alias.name)
        assert isinstance(found, str) or pickle.loads(pickle.dumps(found)) is found
        assert alias.name in dir(package)


def test_folders_are_attributes_and_other_names_are_errors():
    loaded_by("import eigenfeat as e; e.moments.ClassMoments; e.ldg; e._core.default_threads()")
    for name in ("GEMM", "_GEM", "__wrapped__", "_repr_html_"):
        with pytest.raises(AttributeError, match=f"eigenfeat.*{name}"):
            getattr(eigenfeat, name)
    with pytest.raises(ImportError, match="cannot import name 'GEMM' from 'eigenfeat'"):
        exec("from eigenfeat import GEMM")
    names = {}
    exec("from eigenfeat import *", names)
    assert names.keys() >= set(eigenfeat.__all__)


# A program that gets a signal at the moment when some module is imported.
INTERRUPTED = """
import builtins, os, signal, sys
before = builtins.__import__
def importing(name, *rest):
    if name.partition(".")[0] == {name!r} or name == {name!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return before(name, *rest)
# Tests that a shell runs in the background ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
builtins.__import__ = importing
sys.argv = {argv!r}
from eigenfeat.__main__ import main
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the tests send POSIX signals")
@pytest.mark.parametrize(
    "module",
    ["numpy"]
    + [
        pytest.param(one, marks=pytest.mark.long)
        for one in ("eigenfeat.cli.main", "click", "sklearn", "scipy")
    ],
)
def test_ctrl_c_while_the_command_starts_is_a_line(module, tmp_path):
    argv = ["eigenfeat", "predict", "model.efm", "rows.npy", "-o", "x.csv"]
    done = python(INTERRUPTED.format(name=module, argv=argv), cwd=tmp_path)
    assert done.stdout == ""
    # No message if the signal comes before the command has started.
    assert done.stderr in ("", "eigenfeat: interrupted\n")
    assert done.returncode in (130, -signal.SIGINT)  # to a shell, both are 130


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [("moments", None, "passive"), ("moments", "active", "active"), ("fit", None, None)],
)
def test_threads_do_not_spin_while_files_are_read(command, given, expected):
    """The command sets OMP_WAIT_POLICY before the core is loaded, unless the user has set it."""
    policy = {} if given is None else {"OMP_WAIT_POLICY": given}
    code = (
        "import os, sys\nfrom eigenfeat.__main__ import main\n"
        f"sys.argv = ['eigenfeat', '{command}', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(os.environ.get('OMP_WAIT_POLICY'), 'eigenfeat._core' in sys.modules)"
    )
    done = python(code, unset=["OMP_WAIT_POLICY"], **policy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"{expected} False"
