"""Class moments on Spark: the plain functions of eigenfeat.samples.reductions under RDD.treeReduce.

pip install eigenfeat pyspark && python spark_moments.py      # needs Java
"""

from __future__ import annotations

import os
import sys

import numpy as np
from pyspark import SparkConf, SparkContext

from eigenfeat import GEM, ClassMoments
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.reductions import merge_moments, moments


def block(seed: int, n: int = 2000, d: int = 12) -> Block:
    """Rows of three classes; stands for a read of one file."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    return Block(random.standard_normal((n, d)) * (1 + (np.arange(d) + y[:, None]) % 3), y)


def moments_of(seed: int) -> ClassMoments:
    return moments(block(seed), n_threads=1)


def reduced(spark: SparkContext, seeds: list[int]) -> ClassMoments:
    """One pass over the blocks; moments travel as pickles, rows do not."""
    return spark.parallelize(seeds, len(seeds)).map(moments_of).treeReduce(merge_moments)


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of the same Python
    settings = SparkConf().setMaster("local[2]").setAppName("moments")
    settings.set("spark.ui.enabled", "false")
    with SparkContext(conf=settings) as spark:
        found = reduced(spark, list(range(10)))
    print(found)
    print(GEM(n_directions=2).fit_moments(found).eigenvalues_.round(2))


if __name__ == "__main__":
    main()
