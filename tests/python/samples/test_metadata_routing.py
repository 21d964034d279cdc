"""`sample_domain` and weights reach estimators inside pipelines and searches."""

import numpy as np
import pytest
import sklearn
from every_estimator import DOMAINS, X, Y
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenfeat import ldg


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_domains_in_a_pipeline_and_a_search():
    model = ldg.TransferLDG().set_fit_request(sample_domain=True)
    model.set_transform_request(sample_domain=True)
    pipe = make_pipeline(StandardScaler(), model, KNeighborsClassifier(3))
    found = pipe.fit(X, Y, sample_domain=DOMAINS)
    scaled = StandardScaler().fit_transform(X)
    alone = ldg.TransferLDG().fit(scaled, Y, sample_domain=DOMAINS)
    assert np.allclose(found[1].transform(scaled), alone.transform(scaled), rtol=1e-12, atol=1e-12)
    scores = cross_val_score(pipe, X, Y, cv=3, params={"sample_domain": DOMAINS})
    assert np.isfinite(scores).all()
    search = GridSearchCV(pipe, {"kneighborsclassifier__n_neighbors": [1, 3]}, cv=3)
    search.fit(X, Y, sample_domain=DOMAINS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
