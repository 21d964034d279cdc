"""Versions and libraries in use, for bug reports and benchmarks."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from eigenfeat._base.core import core
from eigenfeat._base.version import __version__

__all__ = ["show_versions"]

_DEPENDENCIES = (
    *("numpy", "scipy", "scikit-learn", "scipy-openblas32", "threadpoolctl", "matplotlib", "rich"),
    *("pyarrow", "dask", "distributed", "onnx", "pandas"),
)


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _versions() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    return {
        "system": {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        "core": {
            "eigenfeat": __version__,
            "tier": core.tier(),
            "available tiers": ", ".join(core.available_tiers()),
            "LAPACK": core.lapack_name(),
            "threads": core.default_threads(),
        },
        "dependencies": {package: _installed(package) for package in _DEPENDENCIES},
        "libraries": sorted(threadpool_info(), key=lambda library: str(library["filepath"])),
    }


def show_versions(as_dict: bool = False) -> dict[str, Any] | None:
    """Print the versions, the processor tier and the libraries in use.

    The tier is the instruction set that the compiled kernels use: ``baseline`` (SSE2 on x86-64,
    NEON on aarch64), ``v3`` (AVX2 and FMA) or ``v4`` (AVX-512). It is the best tier of the machine,
    or the value of the environment variable ``EIGENFEAT_CPU`` when the package is imported.

    Parameters
    ----------
    as_dict : bool, default=False
        Whether to return the information instead of printing it.

    Returns
    -------
    dict or None
        ``"system"``, ``"core"`` and ``"dependencies"`` by name, with None for missing packages;
        ``"libraries"``: the BLAS and OpenMP libraries of this process, as reported by
        threadpoolctl.
    """
    result = _versions()
    if as_dict:
        return result
    for title in ("system", "core", "dependencies"):
        print(f"\n{title}:")
        for name, value in result[title].items():
            print(f"{name:>18}: {value}")
    print("\nlibraries:")
    for library in result["libraries"]:
        kernels = library.get("architecture")
        about = [str(library.get("version")), f"{library['num_threads']} threads"]
        about += [f"kernels {kernels}"] if kernels else []
        print(f"{library['internal_api']:>18}: {', '.join(about)} ({library['filepath']})")
    return None
