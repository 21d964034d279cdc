"""Label embeddings and canonical correlations against dense decompositions."""

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import MultinomialNB

from eigenfeat import ArrayBlocks
from eigenfeat.embedding import LabelEmbedding, RandomizedCCA
from eigenfeat.samples import GeneratedBlocks

N, D, C = 600, 12, 30
RNG = np.random.default_rng(0)
Y = np.arange(N) % C
MEANS = RNG.standard_normal((C, 5)) @ RNG.standard_normal((5, D))
X = MEANS[Y] + 0.5 * RNG.standard_normal((N, D)) @ RNG.standard_normal((D, D)) + 100.0
LABELS = sparse.csr_array((np.ones(N), Y, np.arange(N + 1)), shape=(N, C))
MANY = sparse.csr_array(np.minimum(LABELS.toarray() + LABELS.toarray()[RNG.permutation(N)], 1.0))


def whitener(A, ridge=0.0):
    """Centred A, and K with ``K K^T = (A^T A / n + r I)^-1``."""
    A = A - A.mean(axis=0)
    covariance = A.T @ A / len(A)
    covariance += ridge * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    return A, linalg.inv(linalg.cholesky(covariance))


def assert_same_up_to_signs(a, b, atol=1e-7):
    """Compare arrays of shape (m, p), whose rows are determined up to signs."""
    signs = np.sign(np.sum(a * b, axis=1, keepdims=True))
    np.testing.assert_allclose(a, signs * b, atol=atol)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("targets", [LABELS, MANY])
def test_embedding_is_the_dense_decomposition(targets, ridge):
    centred, K = whitener(X, ridge)
    U, values, Vt = linalg.svd(K.T @ centred.T @ targets.toarray() / N, full_matrices=False)
    model = LabelEmbedding(4, ridge=ridge, n_oversamples=20).fit(X, targets)
    np.testing.assert_allclose(model.singular_values_, values[:4], rtol=1e-9)
    assert_same_up_to_signs(model.components_, (K @ U[:, :4]).T)
    assert_same_up_to_signs(model.label_vectors_.T, Vt[:4])
    np.testing.assert_allclose(
        model.transform(X), (X - model.mean_) @ model.components_.T, atol=1e-8
    )


@pytest.mark.parametrize("estimator", [LabelEmbedding(4), RandomizedCCA(4)])
def test_the_largest_weight_of_a_component_is_positive(estimator):
    W = estimator.fit(X, MANY).components_
    assert np.all(W.max(axis=1) == np.abs(W).max(axis=1))


def test_passes_approach_the_decomposition():
    centred, K = whitener(X)
    values = linalg.svdvals(K.T @ centred.T @ LABELS.toarray() / N)[:2]
    errors = []
    for n_passes in (2, 30):
        model = LabelEmbedding(2, ridge=0, n_oversamples=1, n_passes=n_passes).fit(X, Y)
        errors.append(np.abs(model.singular_values_ - values).max())
    assert errors[1] < 1e-6 < errors[0]


def test_label_vectors_are_class_means_in_the_pooled_metric():
    model = LabelEmbedding(5).fit(X, Y)
    features = model.transform(X)
    means = np.stack([features[c == Y].mean(axis=0) for c in range(C)])
    np.testing.assert_allclose(model.label_vectors_ * model.singular_values_ * C, means, atol=1e-7)


def test_scores_are_those_of_linear_discriminant_analysis():
    # 2,000 samples per class: means are hardly shrunk.
    y = np.arange(6000) % 3
    rows = RNG.standard_normal((6000, 2)) @ [[1.0, 0.5], [0.0, 1.0]] + 3 * np.eye(3)[y, :2]
    scores = LabelEmbedding(2, ridge=0).fit(rows, y).decision_function(rows)
    expected = LinearDiscriminantAnalysis().fit(rows, y).decision_function(rows)
    differences = [s - s.mean(axis=1, keepdims=True) for s in (scores, expected)]
    np.testing.assert_allclose(*differences, atol=0.05 * np.abs(differences[1]).max())


def test_rare_classes_are_shrunk():
    rng = np.random.default_rng(1)
    means = rng.standard_normal((300, 10))
    y = np.repeat(np.arange(300), 2)
    noisy = [means[y] + rng.standard_normal((600, 10)) for _ in range(2)]
    model = LabelEmbedding(10).fit(noisy[0], y)
    expected = LinearDiscriminantAnalysis().fit(noisy[0], y)
    assert model.score(noisy[1], y) > expected.score(noisy[1], y)


def test_log_odds_of_several_labels():
    # Two independent labels, each of which moves its own feature by 2.
    rng = np.random.default_rng(2)
    labels = (rng.random((20_000, 2)) < [0.2, 0.6]).astype(float)
    rows = 2 * labels + rng.standard_normal(labels.shape)
    scores = LabelEmbedding(2, ridge=0).fit(rows, labels).decision_function(rows)
    exact = np.log([0.25, 1.5]) + 2 * rows - 2
    assert np.abs(scores - exact).max() < 0.4
    predicted = LabelEmbedding(2).fit(rows, sparse.csr_array(labels)).predict(rows)
    assert sparse.issparse(predicted)
    assert (predicted.toarray() == labels).mean() == pytest.approx(0.867, abs=0.01)


def test_top_labels_are_those_of_the_largest_scores():
    model = LabelEmbedding(5).fit(X, Y)
    order = np.argsort(-model.decision_function(X[:50]), axis=1, kind="stable")
    np.testing.assert_array_equal(model.predict_top(X[:50], 4), order[:, :4])
    np.testing.assert_array_equal(model.predict(X[:50]), order[:, 0])
    assert model.predict_top(X[:1], C).shape == (1, C)
    with pytest.raises(ValueError, match="k: expected"):
        model.predict_top(X, C + 1)


def test_a_label_of_no_sample_and_a_label_of_all():
    targets = np.column_stack([MANY.toarray(), np.zeros(N), np.ones(N)])
    scores = LabelEmbedding(5).fit(X, targets).decision_function(X)
    assert np.isfinite(scores).all()
    assert scores[:, -2].max() < scores[:, :C].max(axis=1).min()
    assert scores[:, -1].min() > 0


@pytest.mark.parametrize("make", [lambda: LabelEmbedding(4), lambda: RandomizedCCA(4)])
def test_all_kinds_of_samples_give_the_same_embedding(make):
    model = make().fit(X, MANY)
    kinds = {
        "dense targets": make().fit(X, MANY.toarray()),
        "lists of targets": make().fit(X, MANY.tolil()),
        "sparse": make().fit(sparse.csr_array(X), MANY),
        "blocks": make().fit(ArrayBlocks(X, MANY, block_rows=77)),
        "float32": make().fit(X.astype(np.float32), MANY),
        "generated": make().fit(
            GeneratedBlocks([(X[:99], MANY[:99]), (X[99:], MANY[99:].toarray())])
        ),
        "function": make().fit(lambda: iter([(X, MANY)])),
        "weights": make().fit(X, MANY, np.full(N, 7.0)),
        "copies": make().fit(np.vstack([X, X]), sparse.vstack([MANY, MANY]), np.arange(2 * N) < N),
    }
    for kind, other in kinds.items():
        atol = 2e-3 if kind == "float32" else 1e-7
        assert_same_up_to_signs(other.components_, model.components_, atol)
    assert kinds["float32"].transform(X.astype(np.float32)).dtype == np.float32


def test_blocks_of_indicators_are_scored():
    model = LabelEmbedding(12).fit(X, MANY)
    expected = (model.predict(X) != MANY).sum(axis=1) == 0
    assert model.score(ArrayBlocks(X, MANY, block_rows=77)) == expected.mean()


def test_blocks_of_labels():
    names = np.array([f"class {c}" for c in Y])
    model = LabelEmbedding(4).fit(X, names)
    blocks = ArrayBlocks(X, names, block_rows=77)
    of_blocks = LabelEmbedding(4).fit(blocks)
    assert_same_up_to_signs(of_blocks.components_, model.components_)
    assert of_blocks.score(blocks) == model.score(X, names)
    np.testing.assert_array_equal(
        np.concatenate(list(of_blocks.predict_top(blocks, 3))), model.predict_top(X, 3)
    )


def test_wide_sparse_samples():
    # 2,500 words, of which no matrix of columns by columns is formed; 50 are frequent in a class.
    rng = np.random.default_rng(3)
    y = np.arange(1500) % 50
    own = 50 * y[:, None] + rng.integers(50, size=(1500, 30))
    words = np.where(rng.random((1500, 30)) < 0.3, own, rng.integers(2500, size=(1500, 30)))
    counts = np.ones(45_000), words.ravel(), np.arange(0, 45_001, 30)
    rows = sparse.csr_array(counts, shape=(1500, 2500))
    rows.sum_duplicates()
    model = LabelEmbedding(49).fit(rows[:1000], y[:1000])
    bayes = MultinomialNB().fit(rows[:1000], y[:1000])
    assert model.score(rows[1000:], y[1000:]) > bayes.score(rows[1000:], y[1000:]) - 0.02


def test_constant_and_dependent_columns():
    model = LabelEmbedding(4, ridge=0).fit(X, Y)
    for more in (X, X @ RNG.standard_normal((D, 3)), np.full((N, 1), 1e9)):
        other = LabelEmbedding(4, ridge=0).fit(np.hstack([X, more]), Y)
        np.testing.assert_allclose(other.singular_values_, model.singular_values_, rtol=1e-6)


@pytest.mark.parametrize("rows", [X, X + 1e6, X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_rounding_adds_no_component(rows, n_classes):
    model = LabelEmbedding().fit(rows, Y % n_classes)
    assert len(model.components_) == n_classes - 1


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (X, np.zeros(N), "y: expected"),
        (X, 2 * MANY.toarray(), "y: expected labels or an indicator matrix .*, got 2.0"),
        (X, MANY[:-1], "y: expected 600 rows"),
        (X, [[1], [1, 2]], "y: expected labels or .*, got lists of several lengths"),
        (np.ones((N, 2)), Y, "X: expected a column that varies"),
    ],
)
def test_bad_input(rows, targets, message):
    model = LabelEmbedding(3).fit(X, Y)
    before = model.components_
    with pytest.raises(ValueError, match=message):
        model.fit(rows, targets)
    assert model.components_ is before


# ---- canonical correlations ----------------------------------------------------------------------

TARGETS = X[:, :3] @ RNG.standard_normal((3, 7)) + RNG.standard_normal((N, 7))


def test_canonical_correlations_are_those_of_the_dense_decomposition():
    a, K = whitener(X)
    b, L = whitener(TARGETS)
    U, values, Vt = linalg.svd(K.T @ a.T @ b @ L / N)
    model = RandomizedCCA(3, ridge=0).fit(X, TARGETS)
    np.testing.assert_allclose(model.canonical_correlations_, values[:3], rtol=1e-9)
    assert_same_up_to_signs(model.components_, (K @ U[:, :3]).T)
    assert_same_up_to_signs(model.target_components_, Vt[:3] @ L.T)
    projected, projected_targets = model.transform(X), model.transform_targets(TARGETS)
    correlations = projected.T @ projected_targets / N
    np.testing.assert_allclose(correlations, np.diag(values[:3]), atol=1e-8)


def test_wide_sparse_matrices_share_a_few_directions():
    # Both sides have 2,400 columns, 400 of which depend on three common factors.
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((1000, 3))
    sides = []
    for _ in range(2):
        common = factors @ rng.standard_normal((3, 400)) > 2
        noise = sparse.random(1000, 2000, 0.01, format="csr", random_state=rng.integers(99))
        sides.append(sparse.hstack([sparse.csr_array(common.astype(float)), noise], format="csr"))
    model = RandomizedCCA(3, n_oversamples=20).fit(sides[0][:750], sides[1][:750])
    projected = model.transform(sides[0][750:]), model.transform_targets(sides[1][750:])
    for j in range(3):
        assert np.corrcoef(projected[0][:, j], projected[1][:, j])[0, 1] > 0.8


def test_targets_of_another_width_are_errors():
    model = RandomizedCCA(2).fit(X, TARGETS)
    with pytest.raises(ValueError, match="y: expected 7 columns, got 2"):
        model.transform_targets(TARGETS[:, :2])
    with pytest.raises(ValueError, match=r"y: expected numbers, got text in column 1 \('b' in"):
        RandomizedCCA(2).fit(X, [[1, "b"]] * N)
    with pytest.raises(ValueError, match=r"y: expected numbers, got text in column 0 \('b' in"):
        RandomizedCCA(2).fit(X, np.array(["b"] * N))
    with pytest.raises(ValueError, match="y: expected rows of one length"):
        RandomizedCCA(2).fit(X, [[1], [1, 2]] * (N // 2))
    with pytest.raises(ValueError, match="y: expected matrices of targets in blocks"):
        RandomizedCCA(2).fit(ArrayBlocks(X, Y))
    with pytest.raises(ValueError, match="y: expected 7 columns in all blocks, got 3"):
        RandomizedCCA(2).fit(GeneratedBlocks([(X, TARGETS), (X, TARGETS[:, :3])]))


def test_columns_without_covariance_with_the_labels_are_refused():
    X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), [0, 0, 1, 1]
    with pytest.raises(
        ValueError,
        match=r"^X: expected nonzero covariances of columns with the targets, got zeros$",
    ):
        LabelEmbedding(1).fit(X, y)
