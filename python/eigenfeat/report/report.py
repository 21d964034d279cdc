"""The report: which sections there are for a model, and the page that has them."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.core import core
from eigenfeat._base.extras import require
from eigenfeat._base.types import Rows
from eigenfeat._base.validation import check_path, check_whole, show
from eigenfeat._base.version import __version__
from eigenfeat.report import classes, directions, early, reasons, reduction
from eigenfeat.report.evidence import Evidence, gathered, quietly, standard_error
from eigenfeat.report.html import Html, Section, cards, escaped, page, paragraph, table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["html_report", "write_report"]


def write_report(
    model: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    image_shape: tuple[int, int] | str | None = "auto",
    sources: Mapping[str, object] | None = None,
    random_state: int = 0,
) -> None:
    """Write a self-contained HTML page about a fitted model and its predictions for some rows.

    Parameters
    ----------
    model, X, y, title, image_shape, sources, random_state
        As in :func:`html_report`.
    path : str or path-like
        The file. An existing file is replaced once the new one is complete.

    Raises
    ------
    ValueError
        If the model is not fitted, or rows, labels or parameters are invalid.
    MissingExtraError
        If Matplotlib is not installed (``pip install "eigenfeat[plot]"``).
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import GEMClassifier
    >>> from eigenfeat.report import write_report
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GEMClassifier().fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "report.html")
    ...     write_report(model, X[1::2], y[1::2], file, title="Wines")
    ...     text = file.read_text(encoding="utf-8")
    >>> "<title>Wines</title>" in text
    True
    """
    target = Path(check_path(path))
    text = html_report(
        model,
        X,
        y,
        title=title,
        image_shape=image_shape,
        sources=sources,
        random_state=random_state,
    )
    handle, part = tempfile.mkstemp(".part", f".{target.name}.", target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def html_report(
    model: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    *,
    title: str | None = None,
    image_shape: tuple[int, int] | str | None = "auto",
    sources: Mapping[str, object] | None = None,
    random_state: int = 0,
) -> str:
    """Return a self-contained HTML page about a fitted model and its predictions for some rows.

    The page needs no network: styles and pictures are inside it. It has, as far as they make sense
    for the model: accuracy with its standard error, classes, confusion, the most confused pairs,
    calibration, the most certain mistakes, times of early decisions and whether they are final,
    spectra, directions as images, what predictions rest on, what was chosen by cross-validation,
    parameters and versions. The same model and rows give the same page.

    Parameters
    ----------
    model : estimator
        A fitted classifier, transformer or regressor of this package, or a pipeline of them. What a
        transformer's features are worth is measured on these rows, by logistic regression in folds
        for GEM and by the nearest neighbours among the other rows for reductions.
    X : (n, d) array-like or sparse matrix
        Rows that had no part in the fit: figures of rows that the model was fitted to are too good.
    y : (n,) array-like
        Labels, or for a regressor values. Rows with labels that the model does not know are counted
        and left out.
    title : str, optional
        Title of the page; by default "Report" and the class of the model.
    image_shape : (rows, columns), "auto" or None, default="auto"
        Shape of the images whose pixels the columns are; None: they are no pixels. "auto" takes
        columns for the pixels of square images if neighbours in the square are correlated more than
        pixels that are far apart.
    sources : mapping, optional
        Further entries of the head of the page, by name, such as files.
    random_state : int >= 0, default=0
        Seed for folds and random draws.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the model is not fitted, or rows, labels or parameters are invalid.
    MissingExtraError
        If Matplotlib is not installed (``pip install "eigenfeat[plot]"``).
    """
    require("matplotlib", "reports")
    check_whole(random_state, "random_state", at_least=0)
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title: expected text or None, got {show(title)}")
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise ValueError(f"model: expected a fitted estimator, got {show(model)}")
    check_is_fitted(model)
    if not any(callable(getattr(model, name, None)) for name in ("predict", "transform")):
        raise ValueError(
            f"model: expected one that predicts or transforms, got {type(model).__name__}"
        )
    rows, names = _rows(model, X)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],) or not len(labels):
        raise ValueError(f"y: expected {rows.shape[0]} labels, one per row, got {show(y)}")
    shape = _image_shape(image_shape, rows, len(names))
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):  # labels may have dollars
        figures, sections = _sections(model, rows, labels, names, shape, random_state)
    sections.append(_about(model))
    lead = [paragraph(_described(model, rows, names))]
    lead += [paragraph(f"{name}: ", value) for name, value in (sources or {}).items()]
    head = Html("".join([*lead, cards(figures)]))
    return page(f"Report: {type(model).__name__}" if title is None else title, head, sections)


# ---- what is given -------------------------------------------------------------------------------


def _rows(model: Any, X: Any) -> tuple[Any, list[str]]:
    """Rows as an array or a sparse matrix, and the names of their columns."""
    known = getattr(model, "feature_names_in_", None)
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        names = [str(name) for name in X.columns]
        if known is not None:
            missing = [str(name) for name in known if str(name) not in names]
            if missing:
                raise ValueError(f"X: expected the columns of the model, without {show(missing)}")
            X = X[list(known)]
            names = [str(name) for name in known]
        X = X.to_numpy()
    elif hasattr(X, "tocsr"):
        X, names = X.tocsr(), []
    else:
        X, names = np.asarray(X), []
    if X.dtype.kind not in "fiub" or X.ndim < 2:
        raise ValueError(f"X: expected rows of numbers, got {X.dtype} of shape {X.shape}")
    if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
        raise ValueError("X: expected finite numbers, got NaN or infinity")
    d = int(X.shape[1])
    wanted = getattr(model, "n_features_in_", d)
    if X.ndim == 2 and wanted != d:
        raise ValueError(f"X: expected {wanted} columns, as the model, got {d}")
    if not names:
        names = [f"column {j}" for j in range(d)] if known is None else [str(one) for one in known]
    return X, names


def _image_shape(wanted: Any, X: Any, d: int) -> tuple[int, int] | None:
    if isinstance(wanted, str) and wanted != "auto":
        raise ValueError(f"image_shape: expected rows and columns, 'auto' or None, got {wanted!r}")
    given = wanted is None or isinstance(wanted, str)
    if not given and (not isinstance(wanted, (Sequence, np.ndarray)) or len(wanted) != 2):
        raise ValueError(f"image_shape: expected rows and columns, got {show(wanted)}")
    if not given:
        wanted = tuple(check_whole(size, "image_shape", at_least=1) for size in wanted)
    return directions.image_shape_of(wanted, X, d)


# ---- sections ------------------------------------------------------------------------------------


def _sections(
    model: Any,
    X: Any,
    y: NDArray[Any],
    names: list[str],
    shape: tuple[int, int] | None,
    random_state: int,
) -> tuple[list[tuple[str, str, str]], list[Section]]:
    """Large figures, and the sections that make sense for the model."""
    evidence = gathered(model, X, y, random_state)
    about: list[Section | None] = [directions.spectrum(model), directions.filters(model, shape)]
    if evidence is None:
        found = _values(model, X, y)
        return found[0], [one for one in (found[1], *about) if one is not None]
    seen = early.decided(model, evidence)
    if seen is not None:
        figures = [*seen.figures, _rows_card(seen.whole)]
        shown: list[Section | None] = [
            *early.early_sections(model, seen),
            classes.confusion(seen.evidence),
        ]
        shown += [classes.class_table(seen.evidence), *about]
        return figures, [one for one in shown if one is not None]
    plain = X.ndim == 2
    shown = [
        classes.confusion(evidence),
        classes.class_table(evidence),
        classes.calibration(evidence),
        classes.mistakes(evidence, shape if plain else None),
    ]
    if evidence.by == "the model":
        shown += about
        if plain:
            shown.append(reasons.reasons(model, evidence, names, shape, random_state))
    else:
        shown = [shown[0], shown[1]]
        if plain:
            shown.insert(0, reduction.embedding(model, evidence))
        shown += [reduction.choices(model), *about]
        shown.append(directions.weights(model, names, _spread(X)) if shape is None else None)
    return _figures(evidence), [one for one in shown if one is not None]


def _figures(evidence: Evidence) -> list[tuple[str, str, str]]:
    n, accuracy = len(evidence), evidence.accuracy
    wrong = int((~evidence.right).sum())
    error = standard_error(accuracy, n)
    figures = [("Accuracy", f"{accuracy:.1%}", f"\u00b1 {error:.1%} (standard error)")]
    figures.append(("Errors", f"{wrong:,}", f"in {n:,} rows"))
    if evidence.losses is not None and evidence.chances is not None:
        figures.append(("Log loss", f"{evidence.losses.mean():.3f}", "mean over the rows"))
        sure = evidence.chances.max(axis=1)
        off = classes.expected_calibration_error(sure, evidence.right)
        figures.append(("Calibration error", f"{off:.3f}", "expected, over ten bins"))
    figures.append(_rows_card(evidence))
    if evidence.by != "the model":
        figures[0] = ("Accuracy", figures[0][1], f"\u00b1 {error:.1%}, of {evidence.by}")
    return figures


def _rows_card(evidence: Evidence) -> tuple[str, str, str]:
    left = f"; {evidence.unknown:,} with unknown labels left out" if evidence.unknown else ""
    return "Rows", f"{len(evidence):,}", f"of {len(evidence.classes)} classes{left}"


def _values(
    model: Any, X: Any, y: NDArray[Any]
) -> tuple[list[tuple[str, str, str]], Section | None]:
    values = np.asarray(y, dtype=np.float64)
    with quietly():
        predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != values.shape:
        raise ValueError(f"y: expected one value a row, got a model of {predicted.shape[1]}")
    left = float(((values - predicted) ** 2).mean())
    total = max(float(((values - values.mean()) ** 2).mean()), 1e-300)
    figures = [
        ("R\u00b2", f"{1 - left / total:.3f}", "share of the variance that is explained"),
        ("Error", f"{np.sqrt(left):.4g}", "root mean square"),
        ("Rows", f"{len(values):,}", ""),
    ]
    return figures, reduction.regression(values, predicted)


def _spread(X: Any) -> NDArray[np.float64]:
    if hasattr(X, "tocsr"):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.sqrt(np.maximum(squares - np.asarray(X.mean(axis=0)).ravel() ** 2, 0))
    return np.asarray(X.std(axis=0), dtype=np.float64)


# ---- the model -----------------------------------------------------------------------------------


def _described(model: Any, X: Any, names: list[str]) -> str:
    told = f"{type(model).__name__} on {len(names):,} columns"
    if hasattr(model, "classes_"):
        told += f", {len(model.classes_)} classes"
    counts: list[str] = []
    layers = getattr(getattr(model, "best_estimator_", model), "layers_", None) or []
    if layers:
        counts.append(" and ".join(f"{len(layer.offset):,}" for layer in layers) + " directions")
    elif hasattr(model, "directions_"):
        counts.append(f"{np.shape(model.directions_)[1]:,} directions")
    elif np.ndim(getattr(model, "components_", 0)) == 2:
        counts.append(f"{len(model.components_)} components")
    return ", ".join([told, *counts]) + "."


def _about(model: Any) -> Section:
    section = Section("Parameters and versions")
    params = model.get_params(deep=False)
    default = _defaults(model)
    lines = [
        (
            Html(f"<code>{escaped(name)}</code>"),
            Html(f"<code>{escaped(show(value, 200))}</code>"),
            "" if name in default and _same(default[name], value) else "changed",
        )
        for name, value in params.items()
    ]
    if lines:
        section.parts.append(table(("parameter", "value", ""), lines, words=(0, 1, 2)))
    versions = [
        ("eigenfeat", __version__),
        ("instructions", core.tier()),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
        ("system", f"{platform.system()} {platform.machine()}"),
    ]
    section.parts.append(paragraph("The versions that made this page:", kind="soft"))
    section.parts.append(table(("", ""), versions, words=(0, 1)))
    return section


def _defaults(model: Any) -> dict[str, Any]:
    import inspect

    signature = inspect.signature(type(model).__init__)
    return {name: one.default for name, one in signature.parameters.items()}


def _same(default: Any, value: Any) -> bool:
    return type(default) is type(value) and show(default, 500) == show(value, 500)
