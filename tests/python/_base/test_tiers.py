"""The instruction set is chosen at import, can be forced, and does not change what is computed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import eigenfeat
from eigenfeat import _core

# Predictions, directions and a reduced space of the same digits, as bytes on standard output.
PROGRAM = """
import sys
import numpy as np
from sklearn.datasets import load_digits
from eigenfeat import LDG, GEM, MulticlassSVM, MultinomialLogit, _core, trust_region_minimum

X, y = load_digits(return_X_y=True)
X = X[:500].astype(sys.argv[1])
y = y[:500]
n_threads = int(sys.argv[2])
logit = MultinomialLogit(penalty=0.1, n_threads=n_threads).fit(X, y)
gem = GEM(n_directions=3, n_threads=n_threads).fit(X, y)
ldg = LDG(n_components=3, n_neighbors=3, gamma=0.5, n_threads=n_threads).fit(X, y)
svm = MulticlassSVM(C=0.1, random_state=0).fit(X, y)
rng = np.random.default_rng(0)
A = rng.normal(size=(11, 11))
ball = trust_region_minimum(A + A.T, rng.normal(size=11), 2.0)
parts = [logit.coef_, gem.transform(X), ldg.transform(X), svm.coef_, ball.x]
sys.stdout.buffer.write(b"".join(np.asarray(p, dtype=np.float64).tobytes() for p in parts))
"""


def in_child(code, *arguments, cpu=None):
    environment = {k: v for k, v in os.environ.items() if k != "EIGENFEAT_CPU"}
    if cpu is not None:
        environment["EIGENFEAT_CPU"] = cpu
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


def test_the_best_tier_is_chosen():
    code = "from eigenfeat import _core; print(_core.tier())"
    assert in_child(code).stdout.decode().strip() == _core.available_tiers()[-1]


@pytest.mark.parametrize("tier", _core.available_tiers())
def test_a_tier_can_be_forced(tier):
    code = "from eigenfeat import _core; print(_core.tier())"
    assert in_child(code, cpu=tier).stdout.decode().strip() == tier


def test_an_empty_variable_forces_nothing():
    code = "from eigenfeat import _core; print(_core.tier())"
    assert in_child(code, cpu="").stdout.decode().strip() == _core.available_tiers()[-1]


@pytest.mark.parametrize("name", ["avx2", "V3", "v5", " "])
def test_unknown_tiers_are_errors(name):
    done = in_child("import eigenfeat; eigenfeat.GEM; from eigenfeat import _core", cpu=name)
    assert done.returncode != 0
    assert f"EIGENFEAT_CPU: expected 'baseline', 'v3' or 'v4', got '{name}'" in done.stderr.decode()


def test_tiers_that_the_machine_lacks_are_errors():
    lacking = [t for t in ("v3", "v4") if t not in _core.available_tiers()]
    if not lacking:
        pytest.skip("this machine has every tier")
    done = in_child("from eigenfeat import _core", cpu=lacking[0])
    assert done.returncode != 0
    assert "EIGENFEAT_CPU: expected one of 'baseline'" in done.stderr.decode()
    assert f"got '{lacking[0]}'" in done.stderr.decode()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiers_agree_to_rounding_and_threads_to_the_bit(dtype):
    results = {}
    for tier in _core.available_tiers():
        runs = [in_child(PROGRAM, dtype, str(n), cpu=tier) for n in (1, 3)]
        for run in runs:
            assert run.returncode == 0, run.stderr.decode()
        assert runs[0].stdout == runs[1].stdout, tier
        results[tier] = np.frombuffer(runs[0].stdout)
    reference = results.pop("baseline")
    tolerance = 2e-3 if dtype == "float32" else 1e-5
    for tier, result in results.items():
        np.testing.assert_allclose(
            result,
            reference,
            rtol=tolerance,
            atol=tolerance * np.abs(reference).max(),
            err_msg=tier,
        )


def test_show_versions_prints_what_is_used(capsys):
    eigenfeat.show_versions()
    printed = capsys.readouterr().out
    for text in (f"tier: {_core.tier()}", "numpy: ", "LAPACK: ", "threads: ", "scikit-learn: "):
        assert text in printed
    assert "openblas" in printed
