"""Estimators by the names that ``fit --model`` and ``search --model`` know."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import click

from eigenfeat.cli.output import UsageError

__all__ = [
    *("CLASSIFIERS", "EXTRACTORS", "FLAGS", "MODELS", "SWITCHES", "assignment", "flag_of"),
    *("TASKS", "full_name", "grid_values", "literal", "suited", "unfitted"),
]

_Kinds = dict[str, tuple[str, str, dict[str, Any]]]  # module, class and parameters
MODELS: _Kinds = {
    "table": ("eigenfeat", "TableClassifier", {}),
    "gem": ("eigenfeat", "GEMClassifier", {}),
    "ldg": ("eigenfeat", "LDG", {"random_state": 0}),
    "reliable": ("eigenfeat", "ReliableClassifier", {"classifier": "lda"}),
    "shift": ("eigenfeat", "MaxMarginShift", {}),
}
GEM_ALONE: tuple[str, str, dict[str, Any]] = ("eigenfeat", "GEM", {})  # with --features
REGRESSOR: tuple[str, str, dict[str, Any]] = (
    "eigenfeat",
    "TableRegressor",
    {},
)  # of --task regression
_LDA = "sklearn.discriminant_analysis"
CLASSIFIERS: _Kinds = {
    "lda": (_LDA, "LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": "auto"}),
    "qda": (_LDA, "QuadraticDiscriminantAnalysis", {"reg_param": 0.1}),
    "bayes": ("sklearn.naive_bayes", "GaussianNB", {}),
    "logit": ("eigenfeat", "MultinomialLogit", {}),
    "neighbour": ("sklearn.neighbors", "KNeighborsClassifier", {"n_neighbors": 1}),
    "table": ("eigenfeat", "TableClassifier", {}),
    "gem": ("eigenfeat", "GEMClassifier", {}),
}
EXTRACTORS: _Kinds = {
    "pca": ("sklearn.decomposition", "PCA", {}),
    "ldg": ("eigenfeat", "LDG", {"random_state": 0}),
    "fisher": ("eigenfeat.ldg", "RegularizedFisher", {}),
    "local_fisher": ("eigenfeat.ldg", "LocalFisher", {}),
    "lda": (_LDA, "LinearDiscriminantAnalysis", {}),
}

# Parameters of GEMClassifier, GEM and MultinomialLogit that have a flag of their own, and its help.
FLAGS = {
    "ridge": "Relative ridge of denominators (default 0.2), or auto.",
    "n_directions": "Maximum directions of a pair, or auto.",
    "threshold": "Minimum eigenvalue (1.5), none, or auto.",
    "pairs": "Pairs of classes: all, hypercube, confusion, one_vs_rest, "
    "class_tree, random_groups, or auto (default).",
    "denominator": "Denominator of pairs: second_moment (default) or covariance.",
    "scale": "Standardise columns: none, columns, or auto (default).",
    "expansion": "Expansion of the projections: half_wave, shifted, polynomial, none (with "
    "--features), or auto (default).",
    "powers": "Exponents of the expansion (default 1,2,3).",
    "penalty": "Penalty of the regression (default 0.03), or auto.",
    "tol": "Tolerance of the regression (default 0.001).",
    "depth": "Number of layers (default 1).",
    "hidden_directions": "Directions of a pair in hidden layers, or auto.",
    "hidden_ridge": "Ridge of hidden layers (default: --ridge).",
    "random_state": "Random seed (default 0).",
    "constant": "Add a column of 1s (default).",
    "include_input": "Add the last layer's input.",
}
SWITCHES = ("constant", "include_input")  # flags that are on or off, without a value


TASKS = ("classification", "regression")


def flag_of(name: str) -> str:
    """The flag of a parameter."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def unfitted(options: SimpleNamespace, *, features: bool = False, regression: bool = False) -> Any:
    """The model that `--model` names, with the parameters that the options set.

    With `features`, that of gem is GEM alone; with `regression`, its regressor. UsageError names an
    option that the model has not, or whose value it does not take.
    """
    kind = options.model_kind
    for part, owner in (("classifier", "reliable"), ("extractor", "shift")):
        if kind != owner and getattr(options, part) is not None:
            raise UsageError(f"--{part}: expected none with --model {kind}")
    model = _made(GEM_ALONE if features else REGRESSOR if regression else MODELS[kind])
    if kind == "reliable":
        model.set_params(classifier=_made(CLASSIFIERS[options.classifier or "lda"]))
    if options.extractor is not None:
        model.set_params(extractor=_made(EXTRACTORS[options.extractor]))
    if options.threads is not None and "n_threads" in model.get_params(deep=False):
        model.set_params(n_threads=options.threads)
    given = [(flag_of(n), n, str(v)) for n in FLAGS if (v := getattr(options, n)) is not None]
    for flag, name, _ in given:
        own = features or regression or kind == "gem" or name == "random_state"
        if not own or _find(model, name) is None:
            where = f"--model {kind}; --set NAME=VALUE sets its parameters"
            where = "--model table; --model gem has it" if kind == "table" else where
            where = "--features or --moments, which fit GEM" if features else where
            where = (
                "--task regression; --set NAME=VALUE sets its parameters" if regression else where
            )
            raise UsageError(f"{flag}: expected none with {where}")
    given += [(f"--set {name}", name, text) for name, text in options.assignments]
    for flag, name, text in given:
        full = full_name(model, name, flag)
        model.set_params(**{full: suited(model, full, literal(text))})
    try:
        getattr(model, "check_parameters", model._validate_params)()
    except ValueError as error:
        message = str(error)
        for flag, name, _ in reversed(given):  # the last one of a parameter counts
            own = name.rpartition("__")[2]
            if f"'{own}' parameter" in message or message.startswith(f"{own}: "):
                raise UsageError(f"{flag}: {message.removeprefix(f'{own}: ')}") from None
        raise UsageError(f"--set: {message}") from None
    return model


def _made(kind: tuple[str, str, dict[str, Any]]) -> Any:
    module, name, parameters = kind
    return getattr(import_module(module), name)(**parameters)


def _find(model: Any, name: str) -> str | None:
    """A parameter's name in the model, which in `GEMClassifier` may be one of `gem` or `logit`."""
    known = model.get_params()
    return next((n for n in (name, f"gem__{name}", f"logit__{name}") if n in known), None)


def full_name(model: Any, name: str, flag: str) -> str:
    """The same; UsageError, which names the option, if there is none."""
    if (full := _find(model, name)) is None:
        own = ", ".join(sorted(model.get_params(deep=False)))
        raise UsageError(
            f"{flag}: expected a parameter of {type(model).__name__}: {own}; or PART__NAME of one "
            "inside it"
        )
    return full


def suited(model: Any, full: str, value: Any) -> Any:
    """The value; for parameters that know these, the word none for None, and a list for A,B,..."""
    part, _, name = full.rpartition("__")
    owner = model.get_params()[part] if part else model
    allowed = getattr(owner, "_parameter_constraints", {}).get(name, [None])
    if isinstance(value, str) and "," in value and {list, tuple} & {*filter(_is_type, allowed)}:
        value = [literal(part) for part in value.split(",") if part.strip()]
    words = any("none" in getattr(one, "options", ()) for one in allowed)
    return "none" if value is None and words and None not in allowed else value


def _is_type(allowed: object) -> bool:
    return isinstance(allowed, type)


# ---- values of parameters ------------------------------------------------------------------------


def assignment(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name.isidentifier() or not value:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}")
    return name, value


def grid_values(given: Sequence[tuple[str, str]]) -> dict[str, list[Any]]:
    """Lists of values by name, from NAME=A,B,C."""
    parts: dict[str, list[Any]] = {}
    for name, text in given:
        listed = literal(text)
        if not isinstance(listed, (list, tuple)):
            listed = [literal(part) for part in text.split(",") if part]
        parts.setdefault(name, []).extend(listed)
    return parts


def literal(text: str) -> Any:
    """A number, true, false, none, a list, or else the text."""
    constants = {"none": None, "null": None, "true": True, "false": False}
    if text.strip().lower() in constants:
        return constants[text.strip().lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text.strip()
