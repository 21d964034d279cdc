"""Take files of models apart, change them, and write them again with valid checksums."""

import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
from fitted_models import MODELS

import eigenfeat as ef
from eigenfeat.io.saving import SCHEMA


def members(path):
    """Contents by name, in the order of the file."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewrite(path, contents, compression=zipfile.ZIP_STORED):
    """Write an archive of these members."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def refusal(path, **options):
    """The text of the error with which loading ends, or None."""
    try:
        ef.load(path, **options)
    except ef.exceptions.FileFormatError as error:
        return str(error)
    return None


@cache
def _whole(name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        ef.save(MODELS[name](), path)
        return path.read_bytes()


def saved(tmp_path, name):
    """Path of a new file with the model `name` of `fitted_models.MODELS`."""
    path = tmp_path / "model"
    path.write_bytes(_whole(name))
    return path


def change_schema(path, change):
    """Let a function change the tree of objects."""
    contents = members(path)
    schema = json.loads(contents[SCHEMA])
    change(schema)
    rewrite(path, contents | {SCHEMA: json.dumps(schema).encode()})


def inside(node, *steps):
    """The dictionary or list that holds an attribute or item, reached by names and numbers."""
    for step in steps:
        node = contents_of(node)[step]
    return contents_of(node)


def contents_of(node):
    found = node["content"]
    return contents_of(found) if isinstance(found, dict) and "__loader__" in found else found


def value(found):
    """The description of a JSON value."""
    names = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return names | {"content": json.dumps(found), "is_json": True}


def described(name, loader="ObjectNode", **more):
    module, _, name = name.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": loader} | more


def listed(content, **more):
    return described("builtins.list", "ListNode", content=content, **more)


def change_value(path, *steps, to):
    """Replace an attribute or item by a JSON value, or by a description."""
    *outer, last = steps
    new = to if isinstance(to, dict) and "__loader__" in to else value(to)
    change_schema(path, lambda schema: inside(schema, *outer).__setitem__(last, new))


def array_at(path, *steps):
    """Name of the member with an array, and the array."""
    contents = members(path)
    *outer, last = steps
    member = inside(json.loads(contents[SCHEMA]), *outer)[last]["file"]
    return member, np.load(io.BytesIO(contents[member]))


def change_array(path, *steps, to):
    """Replace an array; `to` may be a function of it, or the bytes of a file."""
    member, array = array_at(path, *steps)
    new = to(array.copy()) if callable(to) else to
    rewrite(path, members(path) | {member: new if isinstance(new, bytes) else npy(new)})
