"""
A table with numbers, words and missing values
==============================================

This example fits ``TableClassifier`` to simulated parcels, without preparing the columns, and
compares it with models of scikit-learn on the same folds.
"""

import numpy as np

from eigenfeat import TableClassifier
from eigenfeat.demo.parcels import parcels
from eigenfeat.report import compare, comparison_figure

X, y = parcels(900, np.random.default_rng(0))
print(X.head(5).to_string())

# %%
# The classifier pools views of the columns, and says why it does not use a view.

model = TableClassifier(random_state=0).fit(X[:600], y[:600])
print("accuracy", model.score(X[600:], y[600:]))
for view in model.views_:
    print(f"{view.name:15s} {view.weight:.2f} {view.note}")

# %%
# ``compare`` prepares the columns as each other model requires. The picture shows the log
# loss on held-out rows beside the time of a fit.

models = compare(X, y, cv=3)
print(models[["log_loss", "accuracy", "fit_seconds"]].round(3).to_string())
figure = comparison_figure(models)
