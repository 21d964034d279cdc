"""Options of ``eigenfeat fit`` that are parameters of estimators."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from eigenfeat.cli.output import UsageError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.cli.options import Group

__all__ = ["PAIRS", "PARAMETERS", "add_parameters", "estimator_of", "refuse_gem_options"]

# Under the same names, but for the seed.
PARAMETERS = (
    *("ridge", "n_directions", "threshold", "pairs", "denominator", "constant", "scale"),
    *("expansion", "powers", "include_input", "penalty", "tol", "depth", "hidden_directions"),
    *("hidden_ridge", "n_clusters", "random_state"),
)
PAIRS = (
    *("all", "hypercube", "random", "stratified", "confusion", "one_vs_rest", "class_tree"),
    "random_groups",
    "auto",
)


def add_parameters(group: Group) -> None:
    """Add the options to a group of `fit`'s."""
    number: dict[str, Any] = {"type": float, "metavar": "X"}
    whole: dict[str, Any] = {"type": int, "metavar": "N"}
    group.add_argument(
        "--ridge",
        type=_or_auto,
        metavar="X",
        help="relative ridge of denominators (default 0.2), or auto",
    )
    group.add_argument(
        "--n-directions",
        type=_count,
        metavar="N",
        help="maximum directions of a pair of classes, or auto (default)",
    )
    group.add_argument(
        "--threshold",
        type=_threshold,
        metavar="X",
        help="minimum eigenvalue (default 1.5), none, or auto",
    )
    group.add_argument(
        "--pairs",
        choices=PAIRS,
        metavar="NAME",
        help=f"pairs of classes: {', '.join(PAIRS)} (default auto)",
    )
    group.add_argument(
        "--denominator", choices=("second_moment", "covariance"), help="denominator of pairs"
    )
    group.add_argument(
        "--constant",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="add a column of 1s to the rows",
    )
    group.add_argument(
        "--scale", choices=("auto", "none", "columns"), help="standardise columns (default auto)"
    )
    group.add_argument(
        "--expansion", metavar="NAME", help="expansion: auto, half_wave, shifted, polynomial"
    )
    group.add_argument("--powers", type=_powers, metavar="1,2,3", help="exponents of the expansion")
    group.add_argument(
        "--include-input",
        action="store_true",
        default=None,
        help="also use the input of the last layer as features",
    )
    group.add_argument(
        "--penalty",
        type=_or_auto,
        metavar="X",
        help="penalty of the regression (default 0.03), or auto",
    )
    group.add_argument("--tol", **number, help="tolerance of the regression (default 0.001)")
    group.add_argument("--depth", **whole, help="number of layers (default 1)")
    group.add_argument(
        "--hidden-directions",
        **whole,
        help="directions of a pair before the last layer (default 20, fewer with many classes)",
    )
    group.add_argument(
        "--hidden-ridge", **number, help="ridge before the last layer (default: --ridge)"
    )
    group.add_argument(
        "--n-clusters", **whole, help="clusters of each class, if rows fit into memory (default 1)"
    )
    group.add_argument(
        "--seed", dest="random_state", type=int, metavar="N", help="random seed (default 0)"
    )


def estimator_of(kind: type[BaseEstimator], options: argparse.Namespace) -> BaseEstimator:
    """An estimator with the parameters that were given; UsageError if it does not take them."""
    given = {name: getattr(options, name) for name in PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    if given.get("threshold") == "none":
        given["threshold"] = None
    if foreign := sorted(set(given) - set(kind._get_param_names())):
        flags = ", ".join(map(_flag, foreign))
        raise UsageError(
            f"{flags}: expected none with --features or --moments, which fit {kind.__name__}"
        )
    for name, value in given.items():
        _check(kind, name, value)
    model = kind(**given, n_threads=options.threads)
    try:
        model._check_parameters()
    except ValueError as error:  # of several together, or of what is inside one
        name, _, wrong = str(error).partition(": ")
        raise UsageError(f"{_flag(name)}: {wrong}" if name in given else str(error)) from None
    return model


def refuse_gem_options(options: argparse.Namespace) -> None:
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
    told = " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    raise UsageError(f"{_flag(name)}: expected {told}, got {value!r}")


def _words(constraint: Any) -> str:
    choices = getattr(constraint, "options", None)
    return f"one of {', '.join(map(repr, sorted(choices)))}" if choices else str(constraint)


def _flag(name: str) -> str:
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def _threshold(text: str) -> Any:
    """A number, auto, or none."""
    return "none" if text == "none" else _or_auto(text)


def _or_auto(text: str) -> Any:
    """A number, or auto."""
    try:
        return "auto" if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or auto, got {text!r}") from None


def _count(text: str) -> Any:
    """A whole number, or auto."""
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or auto, got {text!r}") from None


def _powers(text: str) -> tuple[int, ...]:
    """Integers separated by commas."""
    return tuple(int(part) for part in text.split(","))
