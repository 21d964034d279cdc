"""Estimators by the names that ``fit --model`` and ``search --model`` know."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import click

from eigenfeat.cli.output import UsageError

__all__ = [
    "CLASSIFIERS",
    "EXTRACTORS",
    "MODELS",
    "TASKS",
    "assignment",
    "full_name",
    "grid_values",
    "set_error",
    "suited",
    "unfitted",
]

_Kinds = dict[str, tuple[str, str, dict[str, Any]]]  # module, class and parameters
MODELS: _Kinds = {
    "table": ("eigenfeat", "TableClassifier", {}),
    "gem": ("eigenfeat", "GEMClassifier", {}),
    "ldg": ("eigenfeat", "LDG", {}),
    "reliable": ("eigenfeat", "ReliableClassifier", {"classifier": "lda"}),
    "shift": ("eigenfeat", "MaxMarginShift", {}),
}
GEM_ALONE: tuple[str, str, dict[str, Any]] = ("eigenfeat", "GEM", {})  # with --features
REGRESSOR: tuple[str, str, dict[str, Any]] = ("eigenfeat", "TableRegressor", {})
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

TASKS = ("classification", "regression")


def unfitted(options: SimpleNamespace, *, features: bool = False, regression: bool = False) -> Any:
    """The model that `--model` names, with the parameters that the options set.

    With `features` the model is GEM alone, with `regression` TableRegressor. UsageError names an
    unknown parameter, or one with a wrong value.
    """
    kind = options.model_kind
    for part, owner in (("classifier", "reliable"), ("extractor", "shift")):
        if kind != owner and getattr(options, part, None) is not None:
            raise UsageError(f"--{part}: expected none with --model {kind}")
    model = _constructed(GEM_ALONE if features else REGRESSOR if regression else MODELS[kind])
    if kind == "reliable":
        model.set_params(classifier=_constructed(CLASSIFIERS[options.classifier or "lda"]))
    if kind == "shift" and options.extractor is not None:
        model.set_params(extractor=_constructed(EXTRACTORS[options.extractor]))
    names = model.get_params(deep=False)
    values = {"n_threads": options.threads, "random_state": options.seed}
    model.set_params(**{n: v for n, v in values.items() if n in names and v is not None})
    for name, text in options.assignments:
        full = full_name(model, name, f"--set {name}")
        model.set_params(**{full: suited(model, full, literal(text))})
    try:
        getattr(model, "check_parameters", model._validate_params)()
    except ValueError as error:
        raise set_error(options, error) or UsageError(f"--set: {error}") from None
    return model


def set_error(options: SimpleNamespace, error: ValueError) -> UsageError | None:
    """UsageError for the --set or --grid whose parameter a message names, if any."""
    message = str(error)
    given = [f"--set {name}" for name, _ in options.assignments]
    given += [f"--grid {name}" for name, _ in getattr(options, "grid", ())]
    for option in given:
        part = option.split()[1].rpartition("__")[2]
        if f"'{part}' parameter" in message or message.startswith(f"{part}: "):
            return UsageError(f"{option}: {message.removeprefix(f'{part}: ')}")
    return None


def _constructed(kind: tuple[str, str, dict[str, Any]]) -> Any:
    module, name, parameters = kind
    return getattr(import_module(module), name)(**parameters)


def full_name(model: Any, name: str, option: str) -> str:
    """Name of a parameter of the model, or of the parts `gem` and `logit` of `GEMClassifier`."""
    known = model.get_params()
    if full := next((n for n in (name, f"gem__{name}", f"logit__{name}") if n in known), None):
        return full
    names = ", ".join(sorted(model.get_params(deep=False)))
    raise UsageError(
        f"{option}: expected a parameter of {type(model).__name__}: {names}; or PART__NAME of an "
        "inner estimator"
    )


def suited(model: Any, full: str, value: Any) -> Any:
    """Convert A,B,... to a list, and None to the word none, for parameters that take these."""
    part, _, name = full.rpartition("__")
    owner = model.get_params()[part] if part else model
    allowed = getattr(owner, "_parameter_constraints", {}).get(name, [None])
    takes_lists = any(kind in (list, tuple, "array-like") for kind in allowed)
    if takes_lists and isinstance(value, str) and "," in value:
        value = [literal(part) for part in value.split(",") if part.strip()]
    takes_none_as_text = any("none" in getattr(kind, "options", ()) for kind in allowed)
    return "none" if value is None and takes_none_as_text and None not in allowed else value


# ---- values of parameters ------------------------------------------------------------------------


def assignment(text: str) -> tuple[str, str]:
    """Name and value of the text NAME=VALUE."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name.isidentifier() or not value:
        raise click.BadParameter(f"expected NAME=VALUE, got {text!r}")
    return name, value


def grid_values(given: Sequence[tuple[str, str]]) -> dict[str, list[Any]]:
    """Lists of values by name, from NAME=A,B,C."""
    grid: dict[str, list[Any]] = {}
    for name, text in given:
        values = literal(text)
        if not isinstance(values, (list, tuple)):
            values = [literal(value) for value in text.split(",") if value]
        grid.setdefault(name, []).extend(values)
    return grid


def literal(text: str) -> Any:
    """The number, True, False, None or list that a text denotes; other texts are unchanged."""
    constants = {"none": None, "null": None, "true": True, "false": False}
    if text.strip().lower() in constants:
        return constants[text.strip().lower()]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text.strip()
