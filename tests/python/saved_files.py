"""Files taken apart, changed and put together again, every checksum as it should be."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
from fitted_models import MODELS

import eigenfeat as ef
from eigenfeat._base.files import archive as _archive
from eigenfeat._base.files import persist


def members(path):
    """Contents by name, in the order of the file."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewrite(path, contents):
    """Write an archive as `eigenfeat` would, with the digest of what is in it."""
    with open(path, "w+b") as file:
        _archive.write_members(file, ((name, [data]) for name, data in contents.items()))


def header_of(path):
    return json.loads(members(path)[persist.HEADER])


def change_header(path, **changes):
    """Replace entries of the header; None takes one away."""
    contents = members(path)
    header = json.loads(contents[persist.HEADER]) | changes
    header = {name: value for name, value in header.items() if value is not None}
    rewrite(path, contents | {persist.HEADER: json.dumps(header, sort_keys=True).encode()})


def change_meta(path, change):
    """Let a function change the object's own part of the header."""
    meta = header_of(path)["meta"]
    change(meta)
    change_header(path, meta=meta)


def change_array(path, name, array):
    """Put another array into the file, with checksums and all."""
    buffer = io.BytesIO()
    persist._write_archive(buffer, "one", {}, [(name, array)])
    one = f"{name}.npy"
    rewrite(path, members(path) | {one: members(buffer)[one]})


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def refusal(path):
    """The text of the error with which loading ends, or None."""
    try:
        ef.load(path)
    except ef.FileFormatError as error:
        return str(error)
    return None


def saved(tmp_path, name):
    """Path of a new file with the model of that name."""
    path = tmp_path / "model"
    ef.save(MODELS[name](), path)
    return path
