"""C headers decide streams as Python does: labels and times are equal."""

import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from eigenfeat.demo.early import signals
from eigenfeat.early import (
    GaussianCompletion,
    MinimumCostClassifier,
    MixtureCompletion,
    ReliableClassifier,
)
from eigenfeat.io import to_c
from eigenfeat.signals import ConvolutionClassifier

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler: gcc or clang")

# Reads the number of series, then the length and samples of each; writes class and time of each.
PROGRAM = r"""
#include <stdio.h>
#include "model.h"

int main(void) {
  long count, i;
  if (fread(&count, sizeof count, 1, stdin) != 1) return 1;
  for (i = 0; i < count; ++i) {
    long samples, t;
    model_state state;
    int found = MODEL_WAIT;
    if (fread(&samples, sizeof samples, 1, stdin) != 1) return 1;
    model_begin(&state);
    for (t = 0; t < samples; ++t) {
      model_real sample[MODEL_CHANNELS];
      if (fread(sample, sizeof sample, 1, stdin) != 1) return 1;
      found = model_push(&state, sample);
    }
    if (found == MODEL_WAIT) found = model_finish(&state);
    printf("%d %d\n", found, state.time);
  }
  return 0;
}
"""


def compiled(model, folder, compiler=None, *flags, dtype="float64", program=PROGRAM, **options):
    """Return the path of a program that decides series by the model's header."""
    to_c(model, folder / "model.h", dtype=dtype, **options)
    (folder / "main.c").write_text(program)
    chosen = compiler or COMPILERS[0], "-std=c99", *WARNINGS, *(flags or ("-O2",))
    command = [*chosen, "main.c", "-o", "main", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "main"


def run(program, series, dtype="float64"):
    """Return classes, times and further numbers that the program prints."""
    pieces = [np.int64(len(series)).tobytes()]
    for one in series:
        samples = np.atleast_2d(one).T
        pieces += [np.int64(len(samples)).tobytes(), samples.astype(dtype).tobytes()]
    done = subprocess.run([program], input=b"".join(pieces), capture_output=True, check=True)
    found = np.array([line.split() for line in done.stdout.decode().splitlines()], dtype=float)
    return found[:, 0].astype(int), found[:, 1], found[:, 2:]


def decided(program, series, dtype="float64"):
    """Return classes and times of series (samples,) or (channels, samples)."""
    return run(program, series, dtype)[:2]


def expected(model, rows, **options):
    found = model.predict_early(rows, **options)
    return np.searchsorted(model.classes_, found.label), found.time


def lda(**options):
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", **options)


def trained(seed=0, n=200, completion=None, **options):
    rng = np.random.default_rng(seed)
    X, y = signals(n, rng)
    return ReliableClassifier(lda(), completion, **options).fit(X, y), rng


@needs_compiler
@pytest.mark.parametrize(
    ("place", "options"),
    [
        (0, {"completion": MixtureCompletion()}),
        (-1, {"completion": GaussianCompletion()}),
        (-1, {}),
        (0, {"n": 400, "target": "swings"}),
        (0, {"n": 400, "conditional": ("true", "time"), "reliability": 0.8}),
    ],
    ids=["mixture", "gaussian", "default", "target", "conditional"],
)
def test_decisions_about_thousands_of_series_agree(tmp_path, place, options):
    compiler = COMPILERS[place]
    model, rng = trained(**options)
    X, _ = signals(3000, rng)
    found = decided(compiled(model, tmp_path, compiler), X)
    label, time = expected(model, X)
    assert_array_equal(found[0], label)
    assert_array_equal(found[1], time)
    assert time.min() < X.shape[1]
    assert len(np.unique(time)) > 5


@needs_compiler
def test_float32_differs_only_at_the_threshold(tmp_path):
    model, rng = trained()
    X = signals(3000, rng)[0].astype(np.float32)
    found = decided(compiled(model, tmp_path, dtype="float32"), X, "float32")
    label, time = expected(model, X)
    same = (found[0] == label) & (found[1] == time)
    assert same.mean() > 0.999


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("costs", [False, True])
def test_no_fault_under_the_sanitizers(tmp_path, costs):
    """Every index is inside its array, and no arithmetic is undefined."""
    model, rng = trained(completion=MixtureCompletion())
    if costs:
        model = MinimumCostClassifier(convolutions(intervals=True), 0.3).fit(*signals(100, rng))
    flags = "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    (tmp_path / "probe.c").write_text("int main(void) { return 0; }\n")
    probe = [COMPILERS[0], *flags, "probe.c", "-o", "probe"]
    if subprocess.run(probe, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no sanitizers")
    X, _ = signals(300, rng)
    series = [one[: 1 + i % 60] for i, one in enumerate(X)]  # `finish` decides short series
    check_streams(model, series, decided(compiled(model, tmp_path, None, *flags), series))


def check_streams(model, series, found):
    """Classes and times equal those of the model's streams."""
    for one, label, time in zip(series, *found, strict=True):
        stream = model.stream()
        for sample in one.T:
            stream.push(sample)
        if stream.decision is None:
            stream.finish()
        assert model.classes_[label] == stream.decision.label
        assert time == stream.decision.time


@needs_compiler
def test_channels_and_lengths(tmp_path):
    rng = np.random.default_rng(3)
    X, y = signals(150, rng)
    channels = np.stack([X, X[:, ::-1] + 0.1 * rng.standard_normal(X.shape)], axis=1)
    model = ReliableClassifier(lda(), features=PCA(6)).fit(channels, y)
    new = channels[:, :, : model.n_timepoints_]
    series = [one[:, : 5 + i % 30] for i, one in enumerate(new)]
    check_streams(model, series, decided(compiled(model, tmp_path), series))


@needs_compiler
@pytest.mark.parametrize(
    ("classifier", "n_classes"), [(lda(), 3), (LogisticRegression(C=0.1, max_iter=2000), 2)]
)
def test_two_classes_and_given_steps(tmp_path, classifier, n_classes):
    rng = np.random.default_rng(5)
    X, y = signals(200, rng)
    names, codes = np.unique(y, return_inverse=True)
    some = codes < n_classes
    model = ReliableClassifier(classifier, correct=False).fit(X[some], names[codes[some]])
    steps = [7, 20, 21, 60]
    found = decided(compiled(model, tmp_path, reliability=0.8, steps=steps), X)
    label, time = expected(model, X, reliability=0.8, steps=steps)
    assert_array_equal(found[0], label)
    assert_array_equal(found[1], time)
    assert set(time) <= set(steps)


@needs_compiler
def test_refused_samples_change_nothing(tmp_path):
    model, _ = trained()
    program = r"""
#include <stdio.h>
#include <string.h>
#include "model.h"

int main(void) {
  model_state state, before;
  const double bad[3] = {NAN, INFINITY, -INFINITY};
  const double good = 0.25;
  int i;
  memset(&state, 0, sizeof state);
  model_begin(&state);
  if (model_finish(&state) != MODEL_REFUSED) return 1;
  for (i = 0; i < 5; ++i) model_push(&state, &good);
  before = state;
  for (i = 0; i < 3; ++i)
    if (model_push(&state, &bad[i]) != MODEL_REFUSED) return 2;
  if (memcmp(&before, &state, sizeof state) != 0) return 3;
  if (model_finish(&state) < 0) return 4;
  before = state;
  for (i = 0; i < 100; ++i)
    if (model_push(&state, &good) != before.decision) return 5;
  if (memcmp(&before, &state, sizeof state) != 0) return 6;
  return 0;
}
"""
    made = compiled(model, tmp_path, program=program)
    assert subprocess.run([made], check=False).returncode == 0


@needs_compiler
def test_labels_and_two_models_in_one_program(tmp_path):
    names = ['say "hi"', "über\\x41??=1", "plain"]
    rng = np.random.default_rng(8)
    X, y = signals(60, rng)
    codes = np.unique(y, return_inverse=True)[1]
    strings = ReliableClassifier(lda(), correct=False).fit(X, np.array(names)[codes])
    numbers = ReliableClassifier(lda(), correct=False).fit(X, np.array([-7, 0, 2**31 - 1])[codes])
    to_c(strings, tmp_path / "text.h")
    to_c(numbers, tmp_path / "2 numbers.h", dtype="float32")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "text.h"\n#include "2 numbers.h"\n'
        "int main(void) {\n  int c;\n"
        '  for (c = 0; c < TEXT_CLASSES; ++c) printf("%s\\n", text_labels[c]);\n'
        '  for (c = 0; c < _2_NUMBERS_CLASSES; ++c) printf("%ld\\n", _2_numbers_labels[c]);\n'
        "  return 0;\n}\n"
    )
    command = [COMPILERS[0], "-std=c99", *WARNINGS, "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout.decode()
    assert done.splitlines() == [*sorted(names), "-7", "0", str(2**31 - 1)]


@needs_compiler
def test_the_header_is_valid_cpp(tmp_path):
    compiler = {"gcc": "g++", "clang": "clang++"}[COMPILERS[0]]
    if not shutil.which(compiler):
        pytest.skip("there is no C++ compiler")
    to_c(trained(n=60)[0], tmp_path / "model.h")
    (tmp_path / "main.cpp").write_text('#include "model.h"\nint main() { return 0; }\n')
    command = [compiler, "-std=c++11", *WARNINGS, "-fsyntax-only", "main.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ReliableClassifier(GaussianNB(), correct=False), "rule 'quadratic'"),
        (ReliableClassifier(lda(), rule="mahalanobis"), "rule 'mahalanobis'"),
        (ReliableClassifier(lda(), rule="sampled"), "rule 'sampled'"),
        (ReliableClassifier(lda(), rule="prefixes"), "rule 'prefixes'"),
        (lda(), "expected a fitted ReliableClassifier"),
    ],
)
def test_unsupported_models_are_errors(model, reason):
    X, y = signals(60, np.random.default_rng(2))
    with pytest.raises(ValueError, match=f"model: .*{reason}"):
        to_c(model.fit(X, y))


def test_bad_arguments(tmp_path):
    X, y = signals(60, np.random.default_rng(2))
    with pytest.raises(NotFittedError):
        to_c(ReliableClassifier(lda()))
    model = ReliableClassifier(lda(), correct=False).fit(X, y)
    for options, reason in [
        ({"dtype": "float16"}, "dtype: expected 'float32' or 'float64'"),
        ({"name": "a-b"}, "name: expected letters"),
        ({"reliability": 1.0}, "reliability"),
        ({"steps": [3, 2]}, "steps"),
    ]:
        with pytest.raises(ValueError, match=reason):
            to_c(model, tmp_path / "model.h", **options)
    assert not list(tmp_path.iterdir())
    huge = ReliableClassifier(lda(), correct=False).fit(X * 1e60, y)
    with pytest.raises(ValueError, match="dtype: expected a type that holds"):
        to_c(huge, dtype="float32")
    large = ReliableClassifier(lda(), correct=False).fit(
        X, np.unique(y, return_inverse=True)[1] * 2**40
    )
    with pytest.raises(ValueError, match="classes: expected strings, or whole numbers"):
        to_c(large)


# ---- convolutions --------------------------------------------------------------------------------

WITH_PROBABILITIES = PROGRAM.replace(
    'printf("%d %d\\n", found, state.time);',
    'printf("%d %d", found, state.time);\n'
    '    for (t = 0; t < MODEL_CLASSES; ++t) printf(" %.17g", (double)state.probabilities[t]);\n'
    '    printf("\\n");',
)


def convolutions(**options):
    return ConvolutionClassifier(420, random_state=0, **options)


def ramps(n, seed, channels=1):
    """Series (n, channels, 60) of two classes, with equal beginnings."""
    rng = np.random.default_rng(seed)
    X, y = signals(n, rng)
    X = np.stack([X, *rng.standard_normal((channels - 1, *X.shape))], axis=1)
    X[:, :, :7] = 1.5
    return X, np.where(y == "swings", 4, -2)


@needs_compiler
@pytest.mark.parametrize(
    ("channels", "intervals", "options"),
    [
        (1, True, {"delay_cost": 0.3}),
        (3, True, {"n_times": 6, "misclassification_cost": [[0.0, 1.0], [8.0, 0.0]]}),
        (2, False, {"times": [9, 20, 41]}),
    ],
    ids=str,
)
def test_minimum_cost_decisions(tmp_path, channels, intervals, options):
    X, y = ramps(120, 0, channels)
    model = MinimumCostClassifier(convolutions(intervals=intervals), **options).fit(X, y)
    new, _ = ramps(400, 1, channels)
    series = [one[:, : 60 - (i % 3 == 0) * (i % 59)] for i, one in enumerate(new)]
    code, time, probability = run(
        compiled(model, tmp_path, program=WITH_PROBABILITIES, dtype="float64"), series
    )
    early = model.predict_early(series)
    assert_array_equal(model.classes_[code], early.label)
    assert_array_equal(time, early.time)
    assert len(np.unique(time)) > 5
    expected = (probability * model.costs_[-1].T[code]).sum(axis=1)
    at_end = time == 60
    assert_allclose(expected[at_end], early.cost[at_end], rtol=1e-9)


@needs_compiler
@pytest.mark.parametrize("intervals", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_convolutions_of_complete_series(tmp_path, intervals, dtype):
    X, y = ramps(80, 0, 2)
    model = convolutions(intervals=intervals, contests=not intervals).fit(X, y)
    new, _ = ramps(200, 1, 2)
    if not intervals:
        new = [one[:, : 3 + i % 70] for i, one in enumerate(new)]
    made = compiled(model, tmp_path, program=WITH_PROBABILITIES, dtype=dtype)
    code, time, probability = run(made, new, dtype)
    assert_array_equal(time, [np.shape(one)[1] for one in new])
    expected = np.concatenate([model.predict_proba([one]) for one in new])
    tolerance = 1e-9 if dtype == "float64" else 0.05  # a count may change at a threshold
    assert_allclose(probability, expected, atol=tolerance)
    if dtype == "float64":
        assert_array_equal(code, expected.argmax(axis=1))
    if intervals:
        short = run(made, [one[:, :30] for one in new[:3]], dtype)
        assert_array_equal(short[0], -2)  # refused


def test_stages_without_convolutions_are_an_error():
    X, y = ramps(60, 2)
    with pytest.raises(ValueError, match="model: expected a MinimumCostClassifier with a Conv"):
        to_c(MinimumCostClassifier(lda(), n_times=2).fit(X, y))
    with pytest.raises(ValueError, match="reliability, steps: expected None with a Convo"):
        to_c(convolutions().fit(X, y), reliability=0.9)
    with pytest.raises(NotFittedError):
        to_c(MinimumCostClassifier())
