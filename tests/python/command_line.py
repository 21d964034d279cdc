"""The command line as tests call it: in this process, with what it prints."""

from __future__ import annotations

import contextlib
import io

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
