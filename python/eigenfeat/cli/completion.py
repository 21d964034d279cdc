"""``eigenfeat completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

from eigenfeat._base.extras import require

__all__ = ["completion"]


def completion(options: argparse.Namespace) -> int:
    """Print the script."""
    require("shtab", "completion in shells")
    import shtab

    parser: argparse.ArgumentParser = options.parser
    for command in _all(parser):
        for action in command._actions:
            names_files = action.metavar in ("FILE", "DATA", "MODEL", "DIR", "FOLDER")
            if names_files and not hasattr(action, "complete"):
                folder = action.metavar in ("DIR", "FOLDER")
                action.complete = shtab.DIRECTORY if folder else shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _all(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [command for name, command in action.choices.items() if " " not in name]
    return found
