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
    "PARAMETERS",
    "assigned",
    "assignment",
    "estimator_of",
    "grid_values",
    "literal",
    "nested_name",
    "new_model",
    "refuse_gem_options",
    "set_parameters",
]

# Options of the same names, but for the seed; in `GEMClassifier` the first are those of `gem`, the
# second those of `logit`.
_OF_GEM = (
    *("ridge", "n_directions", "threshold", "pairs", "denominator", "constant", "scale"),
    *("expansion", "powers", "include_input"),
)
_OF_LOGIT = ("penalty", "tol")
PARAMETERS = (
    *_OF_GEM,
    *_OF_LOGIT,
    *("depth", "hidden_directions", "hidden_ridge", "n_clusters", "random_state"),
)
PAIRS = (
    *("all", "hypercube", "random", "stratified", "confusion", "one_vs_rest", "class_tree"),
    "random_groups",
    "auto",
)
KINDS = ("gem", "ldg", "reliable", "shift")
CLASSIFIERS = ("lda", "qda", "bayes", "logit", "neighbour", "gem")
EXTRACTORS = ("pca", "ldg", "fisher", "local_fisher", "lda")


def new_model(options: SimpleNamespace) -> BaseEstimator:
    """A model of the kind that `--model` names, other than GEM, with its parameters."""
    part = {"reliable": "classifier", "shift": "extractor"}.get(options.model_kind)
    for name in ("classifier", "extractor"):
        if name != part and getattr(options, name) is not None:
            raise UsageError(f"--{name}: expected none with --model {options.model_kind}")
    kind: dict[str, Callable[[], Any]] = {"ldg": _ldg, "reliable": _reliable, "shift": _shift}
    model = kind[options.model_kind]()
    if part is not None and getattr(options, part) is not None:
        parts = _classifiers() if part == "classifier" else _extractors()
        model.set_params(**{part: parts[getattr(options, part)]()})
    given = {} if options.random_state is None else {"random_state": options.random_state}
    if given and "random_state" not in model.get_params(deep=False):
        raise UsageError(f"--seed: expected none with --model {options.model_kind}")
    if options.threads is not None and "n_threads" in model.get_params(deep=False):
        given["n_threads"] = options.threads
    model.set_params(**given)
    return set_parameters(model, assigned(options.assignments), "--set")


def set_parameters(model: BaseEstimator, given: dict[str, object], flag: str) -> BaseEstimator:
    """The model with parameters by name; UsageError names what it does not have or take."""
    known = model.get_params()
    for name, value in given.items():
        if name not in known:
            own = ", ".join(sorted(model.get_params(deep=False)))
            raise UsageError(
                f"{flag}: expected a parameter of {type(model).__name__}: {own}; or PART__NAME of "
                f"one inside it, got {name!r}"
            )
        model.set_params(**{name: value})
    try:
        getattr(model, "_check_parameters", model._validate_params)()
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
    return model


def assignment(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise ValueError(f"expected NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()


def assigned(given: Sequence[tuple[str, str]] | None) -> dict[str, object]:
    """Values by name: numbers, true, false, none, lists in brackets; all else is text."""
    return {name: literal(text) for name, text in given or ()}


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


def nested_name(name: str) -> str:
    """A parameter's name in `GEMClassifier`, from the name of its option."""
    if name in _OF_GEM:
        return f"gem__{name}"
    return f"logit__{name}" if name in _OF_LOGIT else name


def estimator_of(features: bool, options: SimpleNamespace) -> BaseEstimator:
    """A GEM or a GEMClassifier with the parameters that were given, which are checked.

    Raises
    ------
    UsageError
        If it does not take one of them.
    """
    from eigenfeat.gem.classifier import GEMClassifier, default_logit
    from eigenfeat.gem.gem import GEM

    model: Any = GEM() if features else GEMClassifier()
    given = {name: getattr(options, name) for name in PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("threshold") == "none":
        given["threshold"] = None
    if not features:
        model.gem = GEM()
        model.logit = default_logit()
        given = {nested_name(name): value for name, value in given.items()}
    if foreign := sorted(set(given) - set(model.get_params())):
        flags = ", ".join(map(_flag, foreign))
        raise UsageError(f"{flags}: expected none with --features or --moments, which fit GEM")
    for name, value in given.items():
        part, _, own = name.rpartition("__")
        _check(getattr(model, part) if part else model, own, value)
    model.set_params(**given, n_threads=options.threads)
    try:
        model._check_parameters()
    except ValueError as error:  # of several together, or of what is inside one
        name, _, wrong = str(error).partition(": ")
        known = {name, nested_name(name)} & given.keys()
        raise UsageError(f"{_flag(name)}: {wrong}" if known else str(error)) from None
    return model


def refuse_gem_options(options: SimpleNamespace) -> None:
    """UsageError if parameters of GEM were given to another model."""
    given = [name for name in PARAMETERS if getattr(options, name) is not None]
    if foreign := [name for name in given if name != "random_state"]:
        flags = ", ".join(map(_flag, foreign))
        raise UsageError(
            f"{flags}: expected none with --model {options.model_kind}; --set NAME=VALUE sets its "
            "parameters"
        )


def _check(kind: Any, name: str, value: Any) -> None:
    """Raise UsageError unless one of the constraints of an estimator's parameter is satisfied."""
    from sklearn.utils._param_validation import make_constraint  # not for the sake of --help

    wanted = [make_constraint(one) for one in kind._parameter_constraints[name]]
    if any(one.is_satisfied_by(value) for one in wanted):
        return
    shown = [_words(one) for one in wanted if not one.hidden]
    allowed = " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    raise UsageError(f"{_flag(name)}: expected {allowed}, got {value!r}")


def _words(constraint: Any) -> str:
    choices = getattr(constraint, "options", None)
    return f"one of {', '.join(map(repr, sorted(choices)))}" if choices else str(constraint)


def _flag(name: str) -> str:
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


# ---- what they are -------------------------------------------------------------------------------


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
