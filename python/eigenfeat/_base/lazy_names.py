"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes time to import, and importlib
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["lazy_names"]

_ONLY_PARSE = 0x400  # ast.PyCF_ONLY_AST, without the module, which takes time, too


def lazy_names(
    package: str, path: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    The stub beside its file, ``__init__.pyi``, says what is public and where it is defined: it
    holds lines ``from package.module import name as name``, which type checkers read as well.

    Parameters
    ----------
    package, path : str
        Its ``__name__`` and ``__file__``.
    """
    homes = _homes(f"{path.rpartition('.')[0]}.pyi")

    def get(name: str) -> Any:
        if name in homes:
            from importlib import import_module

            value = getattr(import_module(homes[name]), name)
        else:
            value = _submodule(package, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names, sorted(homes)


def _homes(stub: str) -> dict[str, str]:
    """The module of each name that a stub imports."""
    with open(stub, encoding="utf-8") as file:
        tree: Any = compile(file.read(), stub, "exec", _ONLY_PARSE)
    return {alias.name: node.module for node in tree.body for alias in node.names}


def _submodule(package: str, name: str) -> Any:
    result = f"{package}.{name}"
    if not name.startswith("_"):
        from importlib import import_module

        try:
            return import_module(result)
        except ModuleNotFoundError as error:
            if error.name != result:
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
