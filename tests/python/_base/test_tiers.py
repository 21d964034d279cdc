"""The instruction set is chosen at import, can be forced, and does not change what is computed."""

import numpy as np
import pytest
from command_line import python

import eigenfeat
from eigenfeat import _core

# Predictions, directions and a reduced space of the same digits, in both types and with 1 and 3
# threads, as bytes on standard output.
PROGRAM = """
import sys
import numpy as np
from sklearn.datasets import load_digits
from eigenfeat import LDG, GEM, MulticlassSVM, MultinomialLogit, _core
from eigenfeat.regions import trust_region_minimum

digits, y = load_digits(return_X_y=True)
y = y[:500]

def numbers(X, n_threads):
    logit = MultinomialLogit(penalty=0.1, n_threads=n_threads).fit(X, y)
    gem = GEM(n_directions=3, n_threads=n_threads).fit(X, y)
    ldg = LDG(n_components=3, n_neighbors=3, gamma=0.5, n_threads=n_threads).fit(X, y)
    svm = MulticlassSVM(C=0.1, random_state=0, n_threads=n_threads).fit(X, y)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(11, 11))
    ball = trust_region_minimum(A + A.T, rng.normal(size=11), 2.0)
    parts = [logit.coef_, gem.transform(X), ldg.transform(X), svm.coef_, ball.x]
    return b"".join(np.asarray(p, dtype=np.float64).tobytes() for p in parts)

for dtype in ("float32", "float64"):
    for n_threads in (1, 3):
        sys.stdout.buffer.write(numbers(digits[:500].astype(dtype), n_threads))
"""


def in_child(code, cpu=None):
    forced = {} if cpu is None else {"EIGENFEAT_CPU": cpu}
    return python(code, unset=["EIGENFEAT_CPU"], text=False, **forced)


def test_the_best_tier_is_chosen_or_the_one_that_is_forced():
    code = "from eigenfeat import _core; print(_core.tier())"
    tiers = _core.available_tiers()
    for cpu, expected in [(None, tiers[-1]), ("", tiers[-1]), *zip(tiers, tiers, strict=True)]:
        assert in_child(code, cpu).stdout.decode().strip() == expected


@pytest.mark.parametrize("name", ["V3", " "])
def test_unknown_tiers_are_errors(name):
    done = in_child("from eigenfeat import _core", cpu=name)
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


@pytest.mark.long
def test_tiers_agree_to_rounding_and_threads_to_the_bit():
    results = {}
    for tier in _core.available_tiers():
        done = in_child(PROGRAM, cpu=tier)
        assert done.returncode == 0, done.stderr.decode()
        # Types, threads, numbers.
        results[tier] = np.frombuffer(done.stdout).reshape(2, 2, -1)
        assert results[tier][:, 0].tobytes() == results[tier][:, 1].tobytes(), tier
    reference = results.pop("baseline")
    for tier, result in results.items():
        for found, expected, tolerance in zip(result, reference, (2e-3, 1e-5), strict=True):
            np.testing.assert_allclose(
                found,
                expected,
                rtol=tolerance,
                atol=tolerance * np.abs(expected).max(),
                err_msg=tier,
            )


CONVOLUTIONS = """
import sys
import numpy as np
from eigenfeat.signals import ConvolutionFeatures

for dtype in (np.float32, np.float64):
    X = np.random.default_rng(0).standard_normal((9, 2, 77)).astype(dtype)
    model = ConvolutionFeatures(840, differences=True, contests=True, random_state=0).fit(X)
    sys.stdout.buffer.write(model.transform_prefixes(X, [5, 17, 60, 77]).tobytes())
"""


@pytest.mark.long
def test_convolutions_have_the_same_bits_on_all_tiers():
    found = {in_child(CONVOLUTIONS, cpu=tier).stdout for tier in _core.available_tiers()}
    assert len(found) == 1
    assert found.pop()


def test_show_versions_prints_what_is_used(capsys):
    eigenfeat.show_versions()
    printed = capsys.readouterr().out
    for text in (f"tier: {_core.tier()}", "numpy: ", "LAPACK: ", "threads: ", "scikit-learn: "):
        assert text in printed
    assert "openblas" in printed
