"""The demonstration of tables: simulated parcels, with numbers, words and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat._base.types import Labels

__all__ = ["parcels"]

KINDS = ("in time", "late", "damaged")
MISSING = 0.06  # share of empty cells


def parcels(n: int, rng: np.random.Generator) -> tuple[Any, Labels]:
    """Return a data frame of n simulated parcels, with missing cells, and the fate of each (n,).

    Columns are the numbers "weight", "distance" and "hour", and the words "carrier", "weather" and
    "packaging". A parcel is late if the way is long, the weather bad for its carrier, or the hour
    late. It is damaged if it is heavy for its packaging. Both also happen by chance.
    """
    import pandas as pd

    weight = rng.lognormal(1.0, 0.7, n)
    distance = rng.gamma(2.0, 150.0, n)
    hour = rng.uniform(8.0, 20.0, n)
    carrier = rng.choice(["van", "bicycle", "drone"], n, p=[0.5, 0.3, 0.2])
    weather = rng.choice(["sun", "rain", "snow"], n, p=[0.5, 0.3, 0.2])
    packaging = rng.choice(["box", "bag", "tube"], n)
    bad = (weather == "snow") & (carrier != "drone") | (weather == "rain") & (carrier == "drone")
    late = -4.0 + distance / 150.0 + 3.0 * bad + 0.3 * np.maximum(hour - 15.0, 0.0)
    strength = np.select([packaging == "box", packaging == "tube"], [8.0, 4.0], 2.0)
    damaged = 3.0 * np.log(weight / strength) - 0.5
    scores = np.column_stack([np.zeros(n), late, damaged])
    # The largest of the scores with Gumbel noise has the probabilities of a softmax.
    y = np.array(KINDS)[np.argmax(2.0 * scores + rng.gumbel(size=scores.shape), axis=1)]
    X = pd.DataFrame(
        {
            "weight": weight.round(2),
            "distance": distance.round(),
            "hour": hour.round(2),
            "carrier": carrier,
            "weather": weather,
            "packaging": packaging,
        }
    )
    return X.mask(rng.random(X.shape) < MISSING), y
