"""The command line as tests call it, in this process, and programs in processes of their own."""

import contextlib
import io
import os
import subprocess
import sys

from eigenfeat.cli import main as cli


def run(*arguments):
    """Exit status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            status = exit_.code
    return status, out.getvalue(), err.getvalue()


def python(code, *options, unset=(), text=True, cwd=None, timeout=300, **environment):
    """Run a program in a process of its own; variables of the environment may be unset or added."""
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=kept | environment,
        capture_output=True,
        text=text,
        timeout=timeout,
        check=False,
        cwd=cwd,
    )
