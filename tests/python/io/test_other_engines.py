"""The reductions are plain functions: Ray's tasks and Spark's treeReduce call them as they are."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"

COMPARED = """
import numpy as np
from eigenfeat import ClassMoments

def compared(found, blocks):
    whole = ClassMoments()
    for block in blocks:
        whole.update(block.X, block.y)
    for c in range(3):
        np.testing.assert_allclose(found.covariance(c), whole.covariance(c), atol=1e-12)
        np.testing.assert_allclose(found.mean(c), whole.mean(c), atol=1e-13)
        assert found.weight(c) == whole.weight(c)
    print("the same moments")
"""

ON_RAY = """
import ray, ray_moments
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
found = [ray_moments.reduced(list(range(6)), fan_in=2) for _ in range(2)]
assert found[0] == found[1]
compared(found[0], map(ray_moments.block, range(6)))
ray.shutdown()
"""

ON_SPARK = """
import os, sys, spark_moments
from pyspark import SparkConf, SparkContext
os.environ["PYSPARK_PYTHON"] = sys.executable
settings = SparkConf().setMaster("local[1]").setAppName("test").set("spark.ui.enabled", "false")
with SparkContext(conf=settings) as spark:
    found = spark_moments.reduced(spark, list(range(6)))
compared(found, map(spark_moments.block, range(6)))
"""


@pytest.mark.parametrize(("library", "code"), [("ray", ON_RAY), ("pyspark", ON_SPARK)])
def test_moments_of_an_example_are_those_of_one_machine(library, code):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if library == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not here")
    path = os.pathsep.join([str(EXAMPLES), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", COMPARED + code]
    options = {"env": environment, "capture_output": True, "text": True, "timeout": 300}
    ran = subprocess.run(command, check=False, **options)
    assert "the same moments" in ran.stdout, ran.stderr[-2000:]
