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

__all__ = ["CLASSIFIERS", "assignment", "full_name", "grid_values", "literal", "unfitted"]

_LDA = "sklearn.discriminant_analysis"
CLASSIFIERS: dict[str, tuple[str, str, dict[str, Any]]] = {  # module, class, parameters
    "lda": (_LDA, "LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": "auto"}),
    "qda": (_LDA, "QuadraticDiscriminantAnalysis", {"reg_param": 0.1}),
    "bayes": ("sklearn.naive_bayes", "GaussianNB", {}),
    "logit": ("eigenfeat", "MultinomialLogit", {}),
    "neighbour": ("sklearn.neighbors", "KNeighborsClassifier", {"n_neighbors": 1}),
    "gem": ("eigenfeat", "GEMClassifier", {}),
}


def unfitted(options: SimpleNamespace, *, features: bool = False) -> Any:
    """The model that `--model` names, with the parameters that the options set.

    With `features`, that of gem is GEM alone. UsageError names an option that the model has not, or
    whose value it does not take.
    """
    kind = options.model_kind
    if kind != "reliable" and options.classifier is not None:
        raise UsageError(f"--classifier: expected none with --model {kind}")
    model: Any
    if kind == "gem":
        from eigenfeat.gem.classifier import GEMClassifier, default_logit
        from eigenfeat.gem.gem import GEM

        model = GEM() if features else GEMClassifier(gem=GEM(), logit=default_logit())
    elif kind == "ldg":
        from eigenfeat.ldg.linear import LDG

        model = LDG(random_state=0)
    else:
        from eigenfeat.incomplete import ReliableClassifier

        module, name, parameters = CLASSIFIERS[options.classifier or "lda"]
        classifier = getattr(import_module(module), name)(**parameters)
        model = ReliableClassifier(classifier)
    if options.threads is not None and "n_threads" in model.get_params(deep=False):
        model.set_params(n_threads=options.threads)
    for name, text in options.assignments:
        model.set_params(**{full_name(model, name, f"--set {name}"): literal(text)})
    try:
        getattr(model, "_check_parameters", model._validate_params)()
    except ValueError as error:
        raise UsageError(f"--set: {error}") from None
    return model


def full_name(model: Any, name: str, flag: str) -> str:
    """A parameter's name in the model, which in `GEMClassifier` may be one of `gem` or `logit`.

    UsageError, which names the option, if there is none.
    """
    known = model.get_params()
    for full in (name, f"gem__{name}", f"logit__{name}"):
        if full in known:
            return full
    own = ", ".join(sorted(model.get_params(deep=False)))
    raise UsageError(
        f"{flag}: expected a parameter of {type(model).__name__}: {own}; or PART__NAME of one "
        "inside it"
    )


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
