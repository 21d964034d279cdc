// Moments of CSR rows agree with those of the same rows as a dense matrix.
#include "unit/moments_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
ClassMoments sparse_moments(const SparseRows<T>& rows, const Labels& labels, const Weights& weights,
                            index_t n_classes, int n_threads) {
  ClassMoments moments(n_classes, rows.cols);
  moments.update<T>(rows.view(), read(labels), read(weights), n_threads);
  return moments;
}

}  // namespace

TEST_CASE_TEMPLATE("duplicates add up, order does not matter, empty rows are zero", T, float,
                   double) {
  // (0, 1 + 2), (0, 0), (4, 3): mean (4/3, 2), covariance [32/9 4/3; 4/3 2].
  SparseRows<T> rows;
  rows.cols = 2;
  rows.add(1, 1);
  rows.add(1, 2);
  rows.end_row();
  rows.end_row();
  rows.add(1, 3);
  rows.add(0, 4);
  rows.end_row();
  const ClassMoments moments = sparse_moments(rows, {0, 0, 0}, {}, 1, 1);
  CHECK(moments.weight(0) == 3);
  const double tolerance = 10 * static_cast<double>(epsilon<T>());
  CHECK(static_cast<double>(mean_of(moments, 0, 0)) == doctest::Approx(4.0 / 3).epsilon(tolerance));
  CHECK(static_cast<double>(mean_of(moments, 0, 1)) == doctest::Approx(2).epsilon(tolerance));
  const Matrix<double> covariance = covariance_of(moments, 0);
  CHECK(covariance(0, 0) == doctest::Approx(32.0 / 9).epsilon(tolerance));
  CHECK(covariance(0, 1) == doctest::Approx(4.0 / 3).epsilon(tolerance));
  CHECK(covariance(1, 1) == doctest::Approx(2).epsilon(tolerance));
}

TEST_CASE_TEMPLATE("sparse rows of any density agree with the reference", T, float, double) {
  Random random(51);
  for (const double density : {0.0, 0.02, 0.3, 1.0}) {
    for (const index_t d : {index_t{1}, index_t{40}}) {
      const SparseRows<T> rows = random_sparse<T>(random, 250, d, density);
      const Labels labels = random.labels(250, 3);
      Weights weights(250);
      for (double& weight : weights) weight = random.uniform();
      const Matrix<T> dense = rows.dense();
      INFO("density " << density << ", d " << d);
      check_against_reference(sparse_moments(rows, labels, {}, 3, 2), dense, labels, {});
      check_against_reference(sparse_moments(rows, labels, weights, 3, 2), dense, labels, weights);
    }
  }
}

TEST_CASE_TEMPLATE("sparse and dense batches add up", T, float, double) {
  Random random(52);
  const SparseRows<T> rows = random_sparse<T>(random, 120, 9, 0.4);
  const Labels labels = random.labels(120, 2);
  const Matrix<T> dense = rows.dense();
  ClassMoments moments(2, 9);
  const CsrView<T> all = rows.view();
  const CsrView<T> head{all.values, all.indices, all.indptr, 70, 9};
  moments.update<T>(head, {labels.data(), 70}, {}, 2);
  moments.update<T>(dense.read().block(70, 0, 20, 9), {labels.data() + 70, 20}, {}, 2);
  const CsrView<T> tail{all.values, all.indices, all.indptr + 90, 30, 9};  // indptr[0] > 0
  moments.update<T>(tail, {labels.data() + 90, 30}, {}, 2);
  check_against_reference(moments, dense, labels, {});
}

TEST_CASE_TEMPLATE("sparse rows: 1, 2 and 7 threads give the same bits", T, float, double) {
  Random random(53);
  for (const double density : {0.03, 0.5}) {
    const SparseRows<T> rows = random_sparse<T>(random, 1500, 170, density);
    const Labels labels = random.labels(1500, 4);
    const ClassMoments one = sparse_moments(rows, labels, {}, 4, 1);
    CHECK(sparse_moments(rows, labels, {}, 4, 2) == one);
    CHECK(sparse_moments(rows, labels, {}, 4, 7) == one);
  }
}

TEST_CASE_TEMPLATE("a sparse column with a huge mean keeps its covariance", T, float, double) {
  // Column 0 has a large mean and small deviations. The rows have few other entries: d = 60 is
  // sparse enough for products of nonzeros, d = 3 is not.
  Random random(54);
  const double mean = sizeof(T) == 4 ? 1e6 : 1e13;
  for (const index_t d : {index_t{3}, index_t{60}}) {
    SparseRows<T> rows;
    rows.cols = d;
    for (index_t i = 0; i < 200; ++i) {
      rows.add(0, mean + 2 * random.normal());
      if (i % 3 == 0) rows.add(2, random.normal());
      rows.end_row();
    }
    const Labels labels = random.labels(200, 2);
    Weights weights(200);
    for (double& weight : weights) weight = 0.5 + random.uniform();
    INFO("d " << d);
    check_against_reference(sparse_moments(rows, labels, {}, 2, 2), rows.dense(), labels, {});
    check_against_reference(sparse_moments(rows, labels, weights, 2, 2), rows.dense(), labels,
                            weights);
  }
}

TEST_CASE_TEMPLATE("the variance of a class of one sparse row is zero", T, float, double) {
  Random random(55);
  const SparseRows<T> rows = random_sparse<T>(random, 12, 50, 0.05);
  Labels labels(12);
  for (index_t i = 0; i < 12; ++i) labels[i] = static_cast<std::int32_t>(i);
  const ClassMoments moments = sparse_moments(rows, labels, {}, 12, 2);
  check_against_reference(moments, rows.dense(), labels, {});
}
