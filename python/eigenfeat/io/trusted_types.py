"""Types that `load` trusts, and the nodes of skops that may build each type.

A trusted type is harmless for any attributes: its objects raise errors or compute wrong numbers.
Types of scikit-learn that pass attributes to compiled code without checking them, such as `KMeans`,
`OneHotEncoder` and the `Tree` of fitted decision trees, can end the process and are not in this
table.
"""

from __future__ import annotations

import importlib
import re

import numpy as np

__all__ = ["LOADERS", "is_trusted"]

# Folders of this package whose classes files may contain.
_FOLDERS = (
    *("early", "embedding", "expansion", "gem", "ldg", "linear", "maxmargin", "moments", "pencils"),
    *("rayleigh", "samples", "signals", "tables"),
)
_MODULE = re.compile(rf"eigenfeat\.({'|'.join(_FOLDERS)})(\.[a-z_][a-z0-9_]*)*")

# Classes of scikit-learn whose predictions are computed by NumPy and SciPy, which check shapes and
# indices, or by other objects in the file.
_SKLEARN = {
    "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration"
    " _TemperatureScaling",
    "compose._column_transformer": "ColumnTransformer _RemainderColsList make_column_selector",
    "compose._target": "TransformedTargetRegressor",
    "covariance._empirical_covariance": "EmpiricalCovariance",
    "covariance._shrunk_covariance": "LedoitWolf OAS ShrunkCovariance",
    "cross_decomposition._pls": "CCA PLSCanonical PLSRegression PLSSVD",
    "decomposition._factor_analysis": "FactorAnalysis",
    "decomposition._fastica": "FastICA",
    "decomposition._incremental_pca": "IncrementalPCA",
    "decomposition._pca": "PCA",
    "decomposition._truncated_svd": "TruncatedSVD",
    "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "dummy": "DummyClassifier DummyRegressor",
    "ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "ensemble._forest": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier"
    " RandomForestRegressor",
    "ensemble._stacking": "StackingClassifier StackingRegressor",
    "ensemble._voting": "VotingClassifier VotingRegressor",
    "ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
    "feature_extraction.text": "TfidfTransformer",
    "feature_selection._from_model": "SelectFromModel",
    "feature_selection._rfe": "RFE RFECV",
    "feature_selection._sequential": "SequentialFeatureSelector",
    "feature_selection._univariate_selection": "GenericUnivariateSelect SelectFdr SelectFpr"
    " SelectFwe SelectKBest SelectPercentile",
    "feature_selection._variance_threshold": "VarianceThreshold",
    "frozen._frozen": "FrozenEstimator",
    "impute._base": "MissingIndicator SimpleImputer",
    "isotonic": "IsotonicRegression",
    "linear_model._base": "LinearRegression",
    "linear_model._bayes": "ARDRegression BayesianRidge",
    "linear_model._coordinate_descent": "ElasticNet ElasticNetCV Lasso LassoCV",
    "linear_model._huber": "HuberRegressor",
    "linear_model._least_angle": "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC",
    "linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "metrics._scorer": "_PassthroughScorer",
    "mixture._bayesian_mixture": "BayesianGaussianMixture",
    "mixture._gaussian_mixture": "GaussianMixture",
    "model_selection._classification_threshold": "FixedThresholdClassifier"
    " TunedThresholdClassifierCV",
    "model_selection._search": "GridSearchCV RandomizedSearchCV",
    "model_selection._split": "GroupKFold KFold StratifiedKFold",
    "multiclass": "OneVsOneClassifier OneVsRestClassifier",
    "multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
    "naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
    "neighbors._nca": "NeighborhoodComponentsAnalysis",
    "neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing._data": "Binarizer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer"
    " QuantileTransformer RobustScaler StandardScaler",
    "preprocessing._discretization": "KBinsDiscretizer",
    "preprocessing._encoders": "OrdinalEncoder",
    "preprocessing._function_transformer": "FunctionTransformer",
    "preprocessing._label": "LabelBinarizer LabelEncoder",
    "random_projection": "GaussianRandomProjection SparseRandomProjection",
    "svm._classes": "LinearSVC LinearSVR",
    "tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier"
    " ExtraTreeRegressor",
}
_CONTAINERS = {  # types that each node of skops may build
    "BytesNode": {"builtins.bytes"},
    "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
    "DTypeNode": {"numpy.dtype"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "MaskedArrayNode": {"numpy.ma.MaskedArray"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "SparseMatrixNode": {
        f"scipy.sparse._{kind}.{kind}_{suffix}"
        for kind in ("csc", "csr")
        for suffix in ("array", "matrix")
    },
    "TupleNode": {"builtins.tuple"},
}
LOADERS = ("FunctionNode", "NdArrayNode", "ObjectNode", "TypeNode", *_CONTAINERS)
_OBJECTS = {f"sklearn.{module}.{name}" for module in _SKLEARN for name in _SKLEARN[module].split()}
_SCALARS = {f"numpy.{kind.__name__}" for kind in {*np.sctypeDict.values()} - {np.void, np.object_}}
_TYPES = _SCALARS | {f"builtins.{kind.__name__}" for kind in (bool, float, int, str)}
_FUNCTIONS = {
    f"{module}.{name}"
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and name == function.__name__
    for module in ("numpy", "numpy._core._multiarray_umath")
}


def is_trusted(loader: str, module: str, name: str) -> bool:
    """Whether skops's node `loader` may build an object of type `module`.`name`."""
    path = f"{module}.{name}"
    if loader == "ObjectNode":
        return path in _OBJECTS or (
            _MODULE.fullmatch(module) is not None and _is_defined(module, name)
        )
    if loader == "NdArrayNode":
        return path == "numpy.ndarray" or path in _SCALARS
    if loader == "TypeNode":
        return path in _TYPES
    if loader == "FunctionNode":
        return path in _FUNCTIONS
    return path in _CONTAINERS.get(loader, ())


def _is_defined(module: str, name: str) -> bool:
    """Whether a module of this package defines a class of this name."""
    try:
        kind = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return False
    return isinstance(kind, type) and kind.__module__ == module and kind.__name__ == name
