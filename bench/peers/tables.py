"""scikit-learn's models on tables with categories and gaps."""

from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler


def categories(X):
    """Names of the columns that are not numbers."""
    return list(X.select_dtypes(exclude="number"))


def one_hot(model, X):
    """The model on one-hot categories and standardised numbers, with means for gaps."""
    encoder = OneHotEncoder(min_frequency=2, handle_unknown="ignore", sparse_output=False)
    return _encoded(encoder, make_pipeline(SimpleImputer(), StandardScaler()), model, X)


def with_codes(model, X):
    """The model on codes of the categories, and on numbers with means for gaps."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return _encoded(encoder, SimpleImputer(), model, X)


def _encoded(encoder, numbers, model, X):
    words = categories(X)
    rest = [name for name in X if name not in words]
    return make_pipeline(make_column_transformer((encoder, words), (numbers, rest)), model)
