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
    *("CLASSIFIERS", "EXTRACTORS", "MODELS", "PARAMETERS", "assignment", "full_name"),
    *("grid_values", "literal", "unfitted"),
]

_Kinds = dict[str, tuple[str, str, dict[str, Any]]]  # module, class and parameters
MODELS: _Kinds = {
    "gem": ("eigenfeat", "GEMClassifier", {}),
    "ldg": ("eigenfeat", "LDG", {"random_state": 0}),
    "reliable": ("eigenfeat", "ReliableClassifier", {"classifier": "lda"}),
    "shift": ("eigenfeat", "MaxMarginShift", {}),
}
_LDA = "sklearn.discriminant_analysis"
CLASSIFIERS: _Kinds = {
    "lda": (_LDA, "LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": "auto"}),
    "qda": (_LDA, "QuadraticDiscriminantAnalysis", {"reg_param": 0.1}),
    "bayes": ("sklearn.naive_bayes", "GaussianNB", {}),
    "logit": ("eigenfeat", "MultinomialLogit", {}),
    "neighbour": ("sklearn.neighbors", "KNeighborsClassifier", {"n_neighbors": 1}),
    "gem": ("eigenfeat", "GEMClassifier", {}),
}
EXTRACTORS: _Kinds = {
    "pca": ("sklearn.decomposition", "PCA", {}),
    "ldg": ("eigenfeat", "LDG", {"random_state": 0}),
    "fisher": ("eigenfeat.ldg", "RegularizedFisher", {}),
    "local_fisher": ("eigenfeat.ldg", "LocalFisher", {}),
    "lda": (_LDA, "LinearDiscriminantAnalysis", {}),
}

PAIRS = (
    *("all", "hypercube", "random", "stratified", "confusion", "one_vs_rest", "class_tree"),
    *("random_groups", "auto"),
)
EXPANSIONS = ("auto", "half_wave", "shifted", "polynomial", "none")
# Parameters of GEMClassifier, GEM and MultinomialLogit: option, choices or form, and help.
PARAMETERS: dict[str, tuple[str, str | tuple[str, ...], str]] = {
    "ridge": ("--ridge", "X", "Relative ridge of denominators (default 0.2), or auto."),
    "n_directions": ("--n-directions", "N", "Maximum directions of a pair, or auto."),
    "threshold": ("--threshold", "X", "Minimum eigenvalue (1.5), none, or auto."),
    "pairs": ("--pairs", PAIRS, "Pairs of classes (default auto)."),
    "denominator": ("--denominator", ("second_moment", "covariance"), "Denominator of pairs."),
    "scale": ("--scale", ("auto", "none", "columns"), "Standardise columns."),
    "expansion": ("--expansion", EXPANSIONS, "Expansion of the projections (default auto)."),
    "powers": ("--powers", "1,2,3", "Exponents of the expansion."),
    "penalty": ("--penalty", "X", "Penalty of the regression (default 0.03), or auto."),
    "tol": ("--tol", "X", "Tolerance of the regression (default 0.001)."),
    "depth": ("--depth", "N", "Number of layers (default 1)."),
    "hidden_directions": ("--hidden-directions", "N", "Directions of a pair in hidden layers."),
    "hidden_ridge": ("--hidden-ridge", "X", "Ridge of hidden layers (default: --ridge)."),
    "n_clusters": ("--n-clusters", "N", "Clusters of each class, of rows in memory (default 1)."),
    "random_state": ("--seed", "N", "Random seed (default 0)."),
}
_FLAGS = {"constant": "--constant", "include_input": "--include-input"}


def unfitted(options: SimpleNamespace, *, features: bool = False) -> Any:
    """The model that `--model` names, with the parameters that the options set.

    With `features`, that of gem is GEM alone. UsageError names an option that the model has not, or
    whose value it does not take.
    """
    kind = options.model_kind
    for part, owner in (("classifier", "reliable"), ("extractor", "shift")):
        if kind != owner and getattr(options, part) is not None:
            raise UsageError(f"--{part}: expected none with --model {kind}")
    if features:
        model = _made(("eigenfeat", "GEM", {}))
    elif kind == "gem":
        from eigenfeat.gem.classifier import GEMClassifier, default_logit

        model = GEMClassifier(gem=_made(("eigenfeat", "GEM", {})), logit=default_logit())
    else:
        model = _made(MODELS[kind])
        if kind == "reliable":
            model.set_params(classifier=_made(CLASSIFIERS[options.classifier or "lda"]))
        if options.extractor is not None:
            model.set_params(extractor=_made(EXTRACTORS[options.extractor]))
    if options.threads is not None and "n_threads" in model.get_params(deep=False):
        model.set_params(n_threads=options.threads)
    flags = {name: flag for name, (flag, _, _) in PARAMETERS.items()} | _FLAGS
    given = {name: value for name in flags if (value := getattr(options, name)) is not None}
    known = {name for name in given if kind == "gem" or name == "random_state"}
    if foreign := sorted(flags[n] for n in given if n not in known or _find(model, n) is None):
        where = f"--model {kind}; --set NAME=VALUE sets its parameters"
        where = "--features or --moments, which fit GEM" if features else where
        raise UsageError(f"{', '.join(foreign)}: expected none with {where}")
    for name, value in given.items():
        text = name in PARAMETERS and isinstance(PARAMETERS[name][1], str)
        model.set_params(**{str(_find(model, name)): literal(value) if text else value})
    for name, text in options.assignments:
        model.set_params(**{full_name(model, name, f"--set {name}"): literal(text)})
    try:
        getattr(model, "_check_parameters", model._validate_params)()
    except ValueError as error:
        message = str(error)
        named = (
            name for name in given if f"'{name}' param" in message or message.startswith(f"{name}:")
        )
        flag = flags[name] if (name := next(named, "")) else "--set"
        raise UsageError(f"{flag}: {message.removeprefix(f'{name}: ')}") from None
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
