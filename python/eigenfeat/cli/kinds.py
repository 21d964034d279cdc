"""Estimators by the names that ``fit --model`` and ``search --model`` know."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from eigenfeat.cli.output import UsageError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = [
    "CLASSIFIERS",
    "EXTRACTORS",
    "KINDS",
    "PAIRS",
    "assignment",
    "flag_of",
    "full_name",
    "grid_values",
    "literal",
    "unfitted",
]

PAIRS = (
    *("all", "hypercube", "random", "stratified", "confusion", "one_vs_rest", "class_tree"),
    "random_groups",
    "auto",
)
KINDS = ("gem", "ldg", "reliable", "shift")
CLASSIFIERS = ("lda", "qda", "bayes", "logit", "neighbour", "gem")
EXTRACTORS = ("pca", "ldg", "fisher", "local_fisher", "lda")


def unfitted(options: SimpleNamespace, *, features: bool = False) -> Any:
    """The model that `--model` names, with the parameters that the options set.

    With `features`, that of gem is GEM alone. UsageError names an option that the model has not, or
    whose value it does not take.
    """
    kind = options.model_kind
    part = {"reliable": "classifier", "shift": "extractor"}.get(kind)
    for name in ("classifier", "extractor"):
        if name != part and getattr(options, name) is not None:
            raise UsageError(f"--{name}: expected none with --model {kind}")
    makes = {"gem": _gem, "ldg": _ldg, "reliable": _reliable, "shift": _shift}
    model = _features() if features else makes[kind]()
    if part is not None and getattr(options, part) is not None:
        parts = _classifiers() if part == "classifier" else _extractors()
        model.set_params(**{part: parts[getattr(options, part)]()})
    own = model.get_params(deep=False)
    if options.threads is not None and "n_threads" in own:
        model.set_params(n_threads=options.threads)
    _refuse_others(options, model, features)
    for name, value in options.parameters.items():
        _set(model, name, value, flag_of(name))
    for name, text in options.assignments:
        _set(model, name, literal(text), f"--set {name}")
    try:
        getattr(model, "_check_parameters", model._validate_params)()
    except ValueError as error:  # of several together, or of what is inside one
        name, _, wrong = str(error).partition(": ")
        if name in options.parameters:
            raise UsageError(f"{flag_of(name)}: {wrong}") from None
        raise UsageError(f"--set: {error}" if options.assignments else str(error)) from None
    return model


def _refuse_others(options: SimpleNamespace, model: BaseEstimator, features: bool) -> None:
    """UsageError for options of GEMClassifier that the model has no parameter for."""
    kind = options.model_kind
    foreign = [
        flag_of(name)
        for name in options.parameters
        if _find(model, name) is None or (kind != "gem" and name != "random_state")
    ]
    if foreign:
        what = f"--model {kind}; --set NAME=VALUE sets its parameters"
        if features:
            what = "--features or --moments, which fit GEM"
        raise UsageError(f"{', '.join(sorted(foreign))}: expected none with {what}")


def _find(model: BaseEstimator, name: str) -> str | None:
    """A parameter's name in the model, which in `GEMClassifier` may be one of `gem` or `logit`."""
    known = model.get_params()
    return next((n for n in (name, f"gem__{name}", f"logit__{name}") if n in known), None)


def full_name(model: BaseEstimator, name: str, flag: str) -> str:
    """The same; UsageError, which names the option, if there is none."""
    full = _find(model, name)
    if full is None:
        own = ", ".join(sorted(model.get_params(deep=False)))
        raise UsageError(
            f"{flag}: expected a parameter of {type(model).__name__}: {own}; or PART__NAME of one "
            "inside it"
        )
    return full


def _set(model: BaseEstimator, name: str, value: Any, flag: str) -> None:
    """Set a parameter; UsageError unless one of its constraints is satisfied."""
    from sklearn.utils._param_validation import make_constraint  # not for the sake of --help

    part, _, own = full_name(model, name, flag).rpartition("__")
    owner = model.get_params()[part] if part else model
    constraints = getattr(owner, "_parameter_constraints", {}).get(own, "no_validation")
    if constraints != "no_validation":
        wanted = [make_constraint(one) for one in constraints]
        if not any(one.is_satisfied_by(value) for one in wanted):
            shown = [_words(one) for one in wanted if not one.hidden]
            allowed = " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
            raise UsageError(f"{flag}: expected {allowed}, got {value!r}")
    owner.set_params(**{own: value})


def _words(constraint: Any) -> str:
    choices = getattr(constraint, "options", None)
    return f"one of {', '.join(map(repr, sorted(choices)))}" if choices else str(constraint)


def flag_of(name: str) -> str:
    """The option of a parameter."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


# ---- values of parameters ------------------------------------------------------------------------


def assignment(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise ValueError(f"expected NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()


def grid_values(given: Sequence[tuple[str, str]] | None) -> dict[str, list[object]]:
    """Lists of values by name, from NAME=A,B,C."""
    parts: dict[str, list[Any]] = {}
    for name, text in given or ():
        listed = literal(text)
        whole = isinstance(listed, (list, tuple))
        values = list(listed) if whole else [literal(part) for part in text.split(",") if part]
        parts.setdefault(name, []).extend(values)
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


# ---- what they are -------------------------------------------------------------------------------


def _features() -> Any:
    from eigenfeat.gem.gem import GEM

    return GEM()


def _gem() -> Any:
    from eigenfeat.gem.classifier import GEMClassifier, default_logit
    from eigenfeat.gem.gem import GEM

    return GEMClassifier(gem=GEM(), logit=default_logit())


def _ldg() -> Any:
    from eigenfeat.ldg import LDG

    return LDG(random_state=0)


def _reliable() -> Any:
    from eigenfeat.incomplete import ReliableClassifier

    return ReliableClassifier(_classifiers()["lda"]())


def _shift() -> Any:
    from eigenfeat.maxmargin import MaxMarginShift

    return MaxMarginShift()


def _classifiers() -> dict[str, Callable[[], Any]]:
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    from eigenfeat.gem.classifier import GEMClassifier
    from eigenfeat.linear.logistic import MultinomialLogit

    return {
        "lda": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "qda": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
        "bayes": GaussianNB,
        "logit": MultinomialLogit,
        "neighbour": lambda: KNeighborsClassifier(1),
        "gem": GEMClassifier,
    }


def _extractors() -> dict[str, Callable[[], Any]]:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from eigenfeat.ldg import LDG, LocalFisher, RegularizedFisher

    return {
        "pca": PCA,
        "ldg": lambda: LDG(random_state=0),
        "fisher": RegularizedFisher,
        "local_fisher": LocalFisher,
        "lda": LinearDiscriminantAnalysis,
    }
