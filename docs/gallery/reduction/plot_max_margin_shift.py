"""
Rows that a support vector machine moves
========================================

``MaxMarginShift`` moves each row by the dual variables of a multiclass support vector machine.
Principal components of the moved rows then tell classes apart; they are applied to rows as they
are, for which no label is needed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat import MaxMarginShift, plotting

X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
models = {
    "PCA": PCA(2),
    "PCA of moved rows": MaxMarginShift(PCA(2), sigma2="cv"),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    Z_train = model.fit(X_train, y_train).transform(X_train)
    Z_test = model.transform(X_test)
    accuracy = KNeighborsClassifier(5).fit(Z_train, y_train).score(Z_test, y_test)
    plotting.plot_embedding(
        Z_test, y_test, ax=ax, title=f"{name}: {accuracy:.2f}", legend=name != "PCA"
    )
plt.show()
