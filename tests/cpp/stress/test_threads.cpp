// Every parallel kernel with 1, 2 and 7 threads: no data race and the same bits.
#include <doctest/doctest.h>

#include <cmath>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/logit.hpp"
#include "eigenfeat/moments.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/features_support.hpp"
#include "unit/pencil_support.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T, class Rows>
ClassMoments streamed(const Rows& first, const Rows& second, const Vector<std::int32_t>& labels,
                      const Vector<double>& weights, index_t d, int n_threads) {
  ClassMoments moments(4, d);
  moments.update<T>(first, read(labels), read(weights), n_threads);
  moments.update<T>(second, read(labels), {}, n_threads);
  ClassMoments other(4, d);
  other.update<T>(second, read(labels), read(weights), n_threads);
  const Vector<std::int32_t> map{3, 2, 1, 0};
  moments.merge(other, read(map), n_threads);
  return moments;
}

template <class T>
Vector<T> expanded(const Matrix<T>& rows, const Matrix<T>& directions, const Expansion& expansion,
                   int n_threads) {
  const index_t width = expanded_columns(expansion, rows.cols(), directions.cols());
  Vector<T> out(rows.rows() * width);
  expand<T>(rows.read(), directions.read(), {}, expansion,
            row_major(out.data(), rows.rows(), width), n_threads);
  return out;
}

Vector<double> decaying(index_t d) {
  Vector<double> values(d);
  for (index_t k = 0; k < d; ++k) values[k] = 9 * std::pow(0.85, static_cast<double>(k));
  return values;
}

// Results of all functions of rows that linear models call, in one list. Metrics take most of the
// time.
template <class T>
Vector<double> linear_model(const FeatureRows<T>& rows, index_t k, bool metrics, int n_threads) {
  Random random(7);
  const index_t n = rows.rows(), p = rows.cols();
  const auto labels = random.labels(n, k);
  const auto weights = random_weights(random, n);
  const Matrix<double> w = random.normal_matrix<double>(p, k);
  const Matrix<T> coefficients = random.normal_matrix<T>(p, k);
  Vector<double> out(2 * p + 4 * p * k);
  out.reserve(out.size() + 2);  // so that memory that views refer to does not move
  auto next = [at = out.data()](index_t size) mutable { return (at += size) - size; };
  const VectorView<double> sums{next(p), p}, squares{next(p), p};
  feature_sums<T>(rows, read(weights), sums, squares, n_threads);
  const MatrixView<double> gradient = row_major(next(p * k), p, k),
                           products = row_major(next(p * k), p, k),
                           solved = row_major(next(p * k), p, k),
                           by_rows = row_major(next(p * k), p, k);
  const LogitTerms terms =
      logit_gradient<T>(rows, read(labels), read(weights), 0.1, w.read(), gradient, n_threads);
  Matrix<T> z(n, k);
  feature_scores<T>(rows, coefficients.read(), z.view(), n_threads);
  feature_products<T>(rows, z.read(), products, n_threads);
  out.push_back(terms.loss);
  out.push_back(terms.energy);
  if (!metrics) return out;
  const Vector<double> scale(p, 0.5), diagonal(p, 100.0);
  const auto metric = Metric::make<T>(rows, read(weights), read(scale), read(diagonal), 0.5,
                                      Metric::Products::single, n_threads);
  metric->solve(gradient, solved, n_threads);
  const auto dual = Metric::make_dual<T>(rows, read(weights), read(scale), read(diagonal), 0.5,
                                         Metric::Products::coarse, n_threads);
  dual->solve(gradient, by_rows, n_threads);
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("moments of dense and sparse rows", T, float, double) {
  Random random(201);
  const index_t n = 1500, d = 70;
  const auto labels = random.labels(n, 4);
  Vector<double> weights(n);
  for (double& weight : weights) weight = random.uniform();
  const Matrix<T> first = random.normal_matrix<T>(n, d), second = random.normal_matrix<T>(n, d);
  const SparseRows<T> sparse = random_sparse<T>(random, n, d, 0.05),
                      denser = random_sparse<T>(random, n, d, 0.3);
  const ClassMoments dense_one = streamed<T>(first.read(), second.read(), labels, weights, d, 1);
  const ClassMoments sparse_one = streamed<T>(sparse.view(), denser.view(), labels, weights, d, 1);
  for (const int n_threads : {2, 7}) {
    CHECK(streamed<T>(first.read(), second.read(), labels, weights, d, n_threads) == dense_one);
    CHECK(streamed<T>(sparse.view(), denser.view(), labels, weights, d, n_threads) == sparse_one);
  }
}

TEST_CASE_TEMPLATE("wide moments, which are cut into tiles", T, float, double) {
  Random random(202);
  const index_t n = 300, d = 810;
  const Matrix<T> rows = random.normal_matrix<T>(n, d);
  const auto labels = random.labels(n, 2);
  ClassMoments one(2, d), seven(2, d);
  one.update<T>(rows.read(), read(labels), {}, 1);
  seven.update<T>(rows.read(), read(labels), {}, 7);
  CHECK(seven == one);
}

TEST_CASE_TEMPLATE("expansion", T, float, double) {
  Random random(203);
  const Matrix<T> rows = random.normal_matrix<T>(700, 20),
                  directions = random.normal_matrix<T>(20, 9);
  for (const Wave wave : {Wave::none, Wave::half_wave, Wave::shifted}) {
    const Expansion expansion{wave, {1, 2, 3}, true};
    const Vector<T> one = expanded(rows, directions, expansion, 1);
    for (const int n_threads : {2, 7})
      CHECK(same_bits(expanded(rows, directions, expansion, n_threads), one));
  }
}

TEST_CASE_TEMPLATE("pencils: many small items", T, float, double) {
  Random random(204);
  Pencils<T> pencils;
  for (int c = 0; c < 4; ++c) {
    pencils.a.push_back(random.positive_definite<T>(20, 0.1));
    pencils.b.push_back(random.positive_definite<T>(20, 0.5));
  }
  pencils.b.push_back(Matrix<T>(20, 20));  // singular
  for (index_t i = 0; i < 4; ++i) {
    for (index_t j = 0; j < 5; ++j) pencils.items.emplace_back(i, (i + j) % 5);
  }
  for (const Solver solver : kSolvers) {
    const Solved<T> one = solve(pencils, with(solver, 5, 1));
    for (const int n_threads : {2, 7})
      CHECK(solve(pencils, with(solver, 5, n_threads)).same_as(one));
  }
}

TEST_CASE_TEMPLATE("pencils: one large item, and several items that share denominators", T, float,
                   double) {
  Random random(205);
  Pencils<T> pencils = known_pencil<T>(random, decaying(530));
  for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
    const Solved<T> one = solve(pencils, with(solver, 4, 1));
    CHECK(solve(pencils, with(solver, 4, 7)).same_as(one));
  }
  pencils.b.push_back(pencils.a[0]);
  pencils.shifts = {T(0), T(1)};
  pencils.a.push_back(pencils.b[0]);
  pencils.items = {{0, 1}, {0, 0}, {1, 1}};
  const Solved<T> one = solve(pencils, with(Solver::krylov, 3, 1));
  CHECK(solve(pencils, with(Solver::krylov, 3, 7)).same_as(one));
}

TEST_CASE_TEMPLATE("linear models on rows of every kind", T, float, double) {
  Random random(206);
  bool metrics = true;
  for (const Kind kind : kKinds) {
    const Features<T> features(random, kind, 1300, is_plain(kind) ? 520 : 87, true);
    // Each kind of metric once, with few and with many classes in turn: only its solves depend on
    // their number.
    for (const index_t k : {3, 70}) {
      const Vector<double> one = linear_model(features.rows, k, metrics, 1);
      for (const int n_threads : {2, 7})
        CHECK(same_bits(linear_model(features.rows, k, metrics, n_threads), one));
      metrics = !metrics;
    }
    metrics = !metrics;
  }
}
