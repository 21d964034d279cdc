"""Classifiers of streams as C headers, for microcontrollers and other programs without Python."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved_files import replacing
from eigenfeat._base.validation import check_path, show
from eigenfeat._base.version import __version__
from eigenfeat.early.minimum_cost import MinimumCostClassifier
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.reliable_search import ReliableClassifierCV
from eigenfeat.early.rules import PairwiseRule, all_pair_variances
from eigenfeat.early.series import decision_times, taus_of
from eigenfeat.early.stopping import Regression
from eigenfeat.signals.convolutions import ConvolutionClassifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

__all__ = ["to_c"]


def to_c(
    model: BaseEstimator,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float64",
    name: str | None = None,
    reliability: float | Sequence[float] | None = None,
    steps: Sequence[int] | None = None,
) -> str:
    """Write a fitted classifier of streams as a C header.

    The header is C99 and C++11, needs <math.h> and nothing else, and allocates no memory.
    ``NAME_begin(&state)`` begins a series, ``NAME_push(&state, sample)`` takes its next sample and
    returns the class once the series is decided, and ``NAME_finish(&state)`` decides a series that
    has ended. Labels and times equal those of ``model.stream()``; a `ConvolutionClassifier` decides
    at the end of a series, and its labels equal those of `predict`.

    Parameters
    ----------
    model : estimator
        Fitted `ReliableClassifier` or `ReliableClassifierCV` with the rule "pairwise";
        `MinimumCostClassifier` with `ConvolutionClassifier`, its default; or
        `ConvolutionClassifier`.
    path : str or path-like, optional
        File to which the header is also written; an existing file is replaced once the new file is
        complete.
    dtype : {"float32", "float64"}, default="float64"
        Type of the samples and of all numbers. With float32 decisions may differ at thresholds.
    name : str, optional
        Prefix of every name in the header; by default the name of the file, or ``eigenfeat``.
    reliability : float, optional
        tau of a `ReliableClassifier`; by default as in its `predict_early`.
    steps : ascending integers in 1..length, optional
        Numbers of samples after which a `ReliableClassifier` decides; by default as in its
        `predict_early`. Each step adds a table of k (k - 1) / 2 numbers for each Gaussian of the
        completion.

    Returns
    -------
    str
        The header. Its tables have about d (d + 2 k) / 2 numbers for each Gaussian of the
        completion (k + 1 by default, 1 with `GaussianCompletion`), or k numbers for each feature
        and time of a convolution classifier. ``ConvolutionClassifier(840, contests=False)`` has
        small tables.

    Raises
    ------
    ValueError
        If the model is of another kind or uses another rule, if its labels are neither whole
        numbers nor strings, or if an argument is invalid.
    NotFittedError
        If the model is not fitted.

    See Also
    --------
    eigenfeat.io.to_onnx : Models for ONNX runtimes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import ReliableClassifier
    >>> from eigenfeat.io import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    >>> header = to_c(model, name="flower")
    >>> "static inline int flower_push(" in header
    True
    """
    if not isinstance(dtype, str) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {show(dtype)}")
    if path is not None:
        check_path(path)
    name = _name_of(path, name)
    if isinstance(model, ReliableClassifierCV):
        model = getattr(model, "best_estimator_", model)
    numbers = _Numbers(dtype)
    if isinstance(model, (MinimumCostClassifier, ConvolutionClassifier)):
        if reliability is not None or steps is not None:
            kind = type(model).__name__
            raise ValueError(f"reliability, steps: expected None with a {kind}, got a value")
        header = _convolution_header(model, name, numbers)
    elif isinstance(model, ReliableClassifier):
        header = _stream_header(model, reliability, steps, name, numbers)
    else:
        raise ValueError(
            "model: expected a fitted ReliableClassifier, MinimumCostClassifier or "
            f"ConvolutionClassifier, got {show(model)}"
        )
    if path is not None:
        with replacing(path) as file:
            file.write(header.encode())
    return header


def _name_of(path: Any, name: Any) -> str:
    if name is None:
        stem = "eigenfeat" if path is None else re.sub(r"\W", "_", Path(path).stem, flags=re.A)
        name = f"_{stem}" if stem[:1].isdigit() else stem
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name: expected letters, digits and underscores, got {show(name)}")
    return name


def _stream_header(
    model: ReliableClassifier, reliability: Any, steps: Any, name: str, numbers: _Numbers
) -> str:
    """Header of a `ReliableClassifier` with the rule "pairwise" and linear discriminants."""
    check_is_fitted(model)
    tau = float(taus_of(model, reliability, 1)[0])
    fitted, layout = model.fitted_, model.fitted_.layout
    times = decision_times(model, steps, layout.length)
    if fitted.stages is not None or not isinstance(fitted.rule, PairwiseRule):
        raise ValueError(
            "model: expected the rule 'pairwise' with linear discriminants (such as "
            "LinearDiscriminantAnalysis or LogisticRegression), got the rule "
            f"{model.rule_!r} with {show(fitted.classifier)}"
        )
    times = times[(times > 0) & (times < layout.length)]
    rule_tau = np.full(len(times), tau)  # tau of the rule alone at each time
    if fitted.correction is not None:
        rule_tau = fitted.correction.min_tau(rule_tau, times * layout.channels)
        times, rule_tau = times[rule_tau <= 1], rule_tau[rule_tau <= 1]
    is_target = np.ones(len(fitted.classes), dtype=bool)
    if fitted.is_target is not None:
        is_target = fitted.is_target
    mixture, gaussians = fitted.completion.mixture_, fitted.gaussians
    factors = np.stack([gaussian.factor for gaussian in gaussians])
    d, k = layout.width, len(fitted.classes)
    diagonals = np.einsum("gtt->gt", factors)
    rows, columns = np.tril_indices(d, -1)
    higher, lower = np.tril_indices(k, -1)
    scales = np.zeros((len(times), len(gaussians), len(higher)))  # 0 for constant differences
    for g, gaussian in enumerate(gaussians):
        for i, t in enumerate(times):
            variances = all_pair_variances(gaussian.covariances(int(t) * layout.channels)[0])
            deviation = np.sqrt(variances[higher, lower])
            with np.errstate(divide="ignore"):
                scales[i, g] = np.where(deviation > 0, 1 / (np.sqrt(2) * deviation), 0.0)
    looks = np.full(layout.length + 1, -1)  # index of each decision time; -1 for other times
    looks[times] = np.arange(len(times))
    arrays = {
        "START_SCORES": np.stack([gaussian.feature_mean for gaussian in gaussians]),
        "START_WEIGHTS": np.log(mixture.weights),
        "MEANS": np.stack([gaussian.mean for gaussian in gaussians]),
        "RECIPROCALS": 1 / diagonals,
        "LOGARITHMS": -np.log(diagonals),
        "FACTORS": factors[:, rows, columns],
        "GAINS": np.stack([gaussian.gains for gaussian in gaussians]),
        "RISKS": 1.0 - rule_tau,  # allowed probability of other classes
        "PAIRS": scales,
    }
    words = {
        "TAU": format(tau, ".15g"),
        "CHANNELS": layout.channels,
        "LENGTH": layout.length,
        "PARTS": len(gaussians),
        "FIXED": mixture.n_fixed,
        "ENTRIES": d,
        "TARGETS": ", ".join(map(str, is_target.astype(int))),
        "LOOKS": _integers(looks),
        "N_LOOKS": max(1, len(times)),
        "N_PAIRS": max(1, len(higher)),
        "FACTOR_LENGTH": max(1, len(rows)),
        "STATE_BYTES": numbers.itemsize * (len(gaussians) * (d + k + 1) + layout.channels) + 8,
    }
    return _filled_template("early_stream.h.in", name, fitted.classes, numbers, words, arrays)


def _stages_of(
    model: BaseEstimator,
) -> tuple[Sequence[ConvolutionClassifier], NDArray[np.int64], int]:
    """The classifiers of a fitted model, their times (0 for any length), and the onset."""
    check_is_fitted(model)
    if isinstance(model, ConvolutionClassifier):
        return [model], np.array([model.n_times_ or 0]), 0
    stages = model.classifiers_
    if not all(isinstance(stage, ConvolutionClassifier) for stage in stages):
        raise ValueError(
            "model: expected a MinimumCostClassifier with a ConvolutionClassifier, got "
            f"{show(stages[0])}"
        )
    return stages, model.times_, model.onset_


def _convolution_header(model: Any, name: str, numbers: _Numbers) -> str:
    """Header of a `MinimumCostClassifier` with convolutions, or of a `ConvolutionClassifier`."""
    stages, times, onset = _stages_of(model)
    features, k, p = stages[0].features_, len(model.classes_), len(stages)
    width, length = features.n_features_out_, int(times[-1])
    contests = len(features.rivals_)
    summaries = [np.zeros((0, k)), *(stage.coef_[:, width:].T for stage in stages)]
    begin = np.cumsum([len(weights) for weights in summaries[:-1]])
    with_summaries = any(stage.n_times_ is not None for stage in stages)
    # Samples of the longest window: nine taps, and one more for differences.
    buffer = 8 * int(features.dilations_.max()) + 1 + int(features.orders_.max())
    if with_summaries:
        buffer = length - onset
    costs = np.tile(1.0 - np.eye(k), (p, 1, 1))
    regressions: Sequence[Regression] = []
    pads = isinstance(model, MinimumCostClassifier)
    if pads:
        costs, regressions = model.costs_, model.policy_.regressions
    no_points = np.zeros((0, k + 2))
    arrays = {
        "THRESHOLDS": features.thresholds_,
        "INTERCEPTS": np.stack([stage.intercept_ for stage in stages]),
        "FACTORS": np.array([stage.factor_ for stage in stages]),
        "WEIGHTS": np.stack([stage.coef_[:, :width].T for stage in stages]),
        "COSTS": costs,
        "SUMMARY_WEIGHTS": np.concatenate(summaries),
        "POLICY_MEAN": np.stack([*(r.mean for r in regressions), np.zeros(k + 2)]),
        "POLICY_SCALE": np.stack([*(r.scale for r in regressions), np.ones(k + 2)]),
        "POLICY_LEVEL": np.array([*(r.level for r in regressions), 0.0]),
        "POLICY_POINTS": np.concatenate([*(r.fitted for r in regressions), no_points]),
        "POLICY_WEIGHTS": np.concatenate([*(r.weights for r in regressions), np.zeros(0)]),
    }
    channels = features.n_channels_
    words = {
        "LENGTH_TEXT": f"at most {length} samples" if length else "any number of samples",
        "DECIDES": "It is decided when waiting is expected to cost more than it saves."
        if pads
        else "It is decided at its end.",
        "FINISH": "It is padded with its last sample to the next decision time." if pads else "",
        "PADS": int(pads),
        "CHANNELS": channels,
        "LENGTH": length,
        "ONSET": onset,
        "STAGES": p,
        "DILATIONS": len(features.dilations_),
        "FEATURES": len(features.thresholds_),
        "CONTESTS": contests,
        "RIVALS": _integers([*features.rivals_.ravel(), 0]),
        "BUFFER": buffer,
        "DILATION": _integers(features.dilations_),
        "ORDER": _integers(features.orders_),
        "PER_KERNEL": _integers(features.thresholds_per_kernel_),
        "CHANNEL_BEGIN": _integers(features.channel_begin_),
        "CHANNEL": _integers(features.channels_),
        "TIMES": _integers(times),
        "SUMMARY_BEGIN": _integers(
            [-1 if s.n_times_ is None else row for s, row in zip(stages, begin, strict=True)]
        ),
        "N_SUMMARIES": max(1, len(arrays["SUMMARY_WEIGHTS"])),
        "POLICY_BEGIN": _integers(np.cumsum([0, *(len(r.fitted) for r in regressions)])),
        "N_POINTS": max(1, len(arrays["POLICY_POINTS"])),
        # A contest has a sum and a count for each of 84 kernels.
        "STATE_BYTES": numbers.itemsize * (channels * (buffer + 1) + k + 168 * contests)
        + 4 * len(features.thresholds_)
        + 8,
    }
    return _filled_template("convolutions.h.in", name, model.classes_, numbers, words, arrays)


# ---- numbers, labels and templates of C ----------------------------------------------------------


class _Numbers:
    """Text of arrays and numbers of a type in C, without loss of digits."""

    def __init__(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._digits = ".9g" if dtype == "float32" else ".17g"
        self._suffix = "f" if dtype == "float32" else ""
        self.itemsize = self._dtype.itemsize  # bytes of a number

    def __call__(self, array: NDArray[Any]) -> str:
        """Initialiser of an array; an empty array, which C does not have, becomes one zero."""
        if not array.size:
            array = np.zeros([max(length, 1) for length in array.shape])
        if array.ndim > 1:
            return "{" + ",\n".join(self(row) for row in array) + "}"
        return "{" + _lines([self._number(value) for value in array], 6) + "}"

    def _number(self, value: float) -> str:
        with np.errstate(over="ignore"):
            rounded = self._dtype.type(value)
        if not np.isfinite(rounded):
            raise ValueError(f"dtype: expected a type that holds the model's numbers, got {value}")
        text = format(rounded, self._digits)
        return (text if "." in text or "e" in text else f"{text}.0") + self._suffix


def _integers(values: Any) -> str:
    """Whole numbers in lines."""
    return _lines([str(int(value)) for value in values], 24)


def _lines(pieces: list[str], width: int) -> str:
    return ",\n".join(", ".join(pieces[i : i + width]) for i in range(0, len(pieces), width))


def _filled_template(
    template: str,
    name: str,
    classes: NDArray[Any],
    numbers: _Numbers,
    words: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
) -> str:
    """Replace the words @NAME@ of a template by texts and arrays."""
    kind, labels, print_as = _labels(classes)
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "VERSION": __version__,
        "F": "f" if numbers.itemsize == 4 else "",
        "REAL": "float" if numbers.itemsize == 4 else "double",
        "CLASSES": len(classes),
        "LABEL_TYPE": kind,
        "LABELS": labels,
        "FORMAT": f'"{print_as} after %d samples\\n"',
        "TABLE_BYTES": numbers.itemsize * sum(array.size for array in arrays.values()),
        **words,
        **{key: numbers(array) for key, array in arrays.items()},
    }
    text = files("eigenfeat.io").joinpath(template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: str(words[match.group(1)]), text)


def _labels(classes: NDArray[Any]) -> tuple[str, str, str]:
    """The type of the labels in C, the labels, and their format for ``printf``."""
    if classes.dtype.kind in "iub":
        integers = [int(label) for label in classes]
        if max(map(abs, integers)) < 2**31:
            return "const long", ", ".join(map(str, integers)), "%ld"
    elif all(isinstance(label, str) for label in classes.tolist()):
        return "const char *const", ", ".join(map(_quoted, classes.tolist())), "%s"
    raise ValueError(
        "classes: expected strings, or whole numbers of at most 31 bits, got "
        f"{show(classes.tolist())}"
    )


def _quoted(text: str) -> str:
    """A string literal of C; other bytes than plain ASCII are octal escapes of three digits."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'
