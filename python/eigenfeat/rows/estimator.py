"""What every estimator of the package shares beside scikit-learn's own: links to its page."""

from __future__ import annotations

from typing import Any

import sklearn.base

__all__ = ["BaseEstimator"]

# Address of the documentation, with a slash at its end. While it is empty there is no link.
DOCUMENTATION_URL = ""
FAMILIES = ("ldg", "incomplete", "maxmargin", "distributed")  # which have pages of their own
PAGE = "api/generated/{estimator_module}.{estimator_name}.html"


class BaseEstimator(sklearn.base.BaseEstimator):
    """scikit-learn's, whose HTML representation links to the page of the estimator in our site."""

    _doc_link_module = "eigenfeat"

    @property
    def _doc_link_template(self) -> str:
        return DOCUMENTATION_URL + PAGE if DOCUMENTATION_URL else ""

    @_doc_link_template.setter
    def _doc_link_template(self, value: str) -> None:
        raise AttributeError("_doc_link_template: set eigenfeat.rows.estimator.DOCUMENTATION_URL")

    def _doc_link_url_param_generator(self) -> dict[str, Any]:
        """The module and the name under which the API's pages list the class."""
        name, folder = type(self).__name__, type(self).__module__.split(".")[1]
        module = f"eigenfeat.{folder}" if folder in FAMILIES else "eigenfeat"
        return {"estimator_module": module, "estimator_name": name}
