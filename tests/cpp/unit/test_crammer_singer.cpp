// The dual SVM solvers against plain loops: values, feasibility, optima, threads, misuse.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "eigenfeat/crammer_singer.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/svm_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;
namespace svm = eigenfeat::reference::svm;

namespace {

template <class T>
struct Case {
  Matrix<T> x;
  Vector<std::int32_t> labels;
  Vector<double> costs;
  index_t k;
  double margin = 1.5, constant = 1.0;

  Case(Random& random, index_t n, index_t d, index_t classes, double cost = 0.3,
       index_t padding = 0)
      : x(n, d, Order::rows, padding), labels(random.labels(n, classes)), k(classes) {
    for (index_t i = 0; i < n; ++i) {
      costs.push_back(cost * (0.5 + random.uniform()));
      for (index_t j = 0; j < d; ++j) {
        const bool own = j % classes == labels[i];
        x(i, j) = static_cast<T>(0.7 * random.normal() + (own ? 1.0 : 0.0));
      }
    }
  }
  SvmProblem problem() const { return {read(labels), read(costs), k, margin, constant}; }
};

template <class T>
Matrix<double> duals_of(const CrammerSinger<T>& solver, index_t n, index_t k) {
  Matrix<double> a(n, k);
  solver.duals(a.view());
  return a;
}

// Compares the results of a pass over all rows with the reference's; returns the duals.
template <class T>
Matrix<double> check_values(const CrammerSinger<T>& solver, const Case<T>& data) {
  Matrix<double> a = duals_of(solver, data.x.rows(), data.k);
  const auto right =
      svm::values<T>(data.x.read(), data.constant, data.labels, data.costs, data.margin, a.read());
  const long double eps = 200 * epsilon<T>() * right.primal;
  CHECK(std::fabs(static_cast<long double>(solver.primal()) - right.primal) <= eps);
  CHECK(std::fabs(static_cast<long double>(solver.dual()) - right.dual) <=
        200 * epsilon<double>() * right.primal);
  CHECK(std::fabs(static_cast<long double>(solver.gap()) - right.gap) <= eps);
  CHECK(solver.gap() >= 0.0);
  return a;
}

template <class T>
void check_state(const CrammerSinger<T>& solver, const Case<T>& data) {
  const index_t n = data.x.rows();
  const Matrix<double> a = check_values(solver, data);
  const auto w = svm::weights<T>(data.x.read(), data.constant, a.read());
  Matrix<double> found(data.k, solver.features());
  solver.weights(found.view());
  index_t support = 0;
  for (index_t i = 0; i < n; ++i) {
    const std::int32_t own = data.labels[i];
    double sum = 0.0;
    for (index_t c = 0; c < data.k; ++c) {
      sum += a(i, c);
      if (c != own) CHECK(a(i, c) <= 0.0);
    }
    CHECK(std::fabs(sum) <= 1e-14 * data.costs[i]);
    CHECK(a(i, own) <= data.costs[i] * (1 + 1e-14));
    support += a(i, own) > 0.0 ? 1 : 0;
  }
  CHECK(solver.support() == support);
  for (index_t c = 0; c < data.k; ++c) {
    for (index_t j = 0; j < solver.features(); ++j)
      CHECK(std::fabs(static_cast<long double>(found(c, j)) - w[c][j]) <= 1e-11L);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("primal, dual, gap and duals agree with the formulas", T, float, double) {
  Random random(901);
  for (const DualSolver solver : {DualSolver::sequential, DualSolver::frank_wolfe}) {
    for (const index_t k : {2, 3, 8, 9, 16, 17, 33, 65, 140}) {
      Case<T> data(random, 2 * k + 11, 13, k);
      data.constant = k % 2 == 0 ? 0.0 : 0.5;
      CrammerSinger<T> found(data.x.read(), data.problem(), {solver, 5, 7}, 1);
      CHECK(found.run(0, 1e-3, 1) == 0);
      double before = found.dual();
      CHECK(before == 0.0);
      for (int epoch = 0; epoch < 4; ++epoch) {
        CHECK(found.run(1, 0.0, 2) == 1);
        CHECK(found.dual() >= before - 1e-6 * found.primal());
        before = found.dual();
      }
      check_state(found, data);
    }
  }
}

TEST_CASE_TEMPLATE("dense rows of any number of features and classes", T, float, double) {
  // Passes take four rows, a few classes and a vector of features at a time: all remainders occur.
  const auto check = [](index_t d, index_t k, index_t n) {
    CAPTURE(d);
    CAPTURE(k);
    CAPTURE(n);
    Random random(907);
    const Case<T> data(random, n, d, k, 1.0 / static_cast<double>(d), 5);
    CrammerSinger<T> found(data.x.read(), data.problem(), {}, 1);
    found.run(2, 0.0, 1);
    check_state(found, data);
  };
  // Two classes are one difference, ten are padded on some tiers, sixteen fill vectors on most.
  for (const index_t d : {1, 2, 3, 4, 15, 16, 17, 63, 100, 511, 512, 513, 1023, 1024, 1025, 1100}) {
    for (const index_t k : {2, 10, 16}) check(d, k, 7);
  }
  for (const index_t k : {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 24, 26, 32})
    check(37, k, 11);
  for (const index_t k : {48, 80}) {
    CAPTURE(k);
    Random random(908);
    const Case<T> data(random, 11, 37, k, 1.0 / 37.0, 5);
    CrammerSinger<T> found(data.x.read(), data.problem(), {}, 1);
    found.run(2, 0.0, 1);
    check_values(found, data);
  }
  for (const index_t n : {1, 3, 4, 5, 8, 257, 260}) check(37, 6, n);
}

TEST_CASE("the gap closes from any start, and no weights have a smaller primal") {
  Random random(902);
  const Case<double> data(random, 40, 6, 4);
  CrammerSinger<double> solver(data.x.read(), data.problem(), {}, 1);
  CHECK(solver.run(5000, 1e-10, 1) < 5000);
  CHECK(solver.gap() <= 1e-10 * solver.primal());
  check_state(solver, data);
  // From its own solution the solver stops at once; from other duals it finds the same solution.
  const Matrix<double> a = duals_of(solver, 40, 4);
  CrammerSinger<double> again(data.x.read(), data.problem(), {}, 1);
  again.start(a.read(), 1);
  CHECK(again.run(10, 1e-9, 1) == 0);
  again.start(random.normal_matrix<double>(40, 4).read(), 1);
  check_state(again, data);
  again.run(5000, 1e-10, 1);
  CHECK(again.primal() == doctest::Approx(solver.primal()).epsilon(1e-9));
  CrammerSinger<double> slow(data.x.read(), data.problem(), {DualSolver::frank_wolfe, 1, 0}, 1);
  slow.run(4000, 1e-4, 1);
  CHECK(slow.primal() == doctest::Approx(solver.primal()).epsilon(2e-4));
  CHECK(slow.dual() <= solver.dual() + 1e-9 * solver.primal());
}

TEST_CASE_TEMPLATE("CSR rows with duplicates agree with dense rows", T, float, double) {
  Random random(903);
  SparseRows<T> sparse = random_sparse<T>(random, 60, 30, 0.2);
  sparse.add(3, 0.5);
  sparse.add(3, -1.25);
  sparse.add(1, 2.0);
  sparse.end_row();
  Case<T> data(random, 61, 30, 3);
  data.x = sparse.dense();  // mostly zeros: compressed inside
  for (const DualSolver kind : {DualSolver::sequential, DualSolver::frank_wolfe}) {
    CrammerSinger<T> dense(data.x.read(), data.problem(), {kind, 4, 1}, 1);
    CrammerSinger<T> csr(sparse.view(), data.problem(), {kind, 4, 1}, 1);
    dense.run(6, 0.0, 1);
    csr.run(6, 0.0, 1);
    check_state(csr, data);
    check_state(dense, data);
    CHECK(csr.primal() == doctest::Approx(dense.primal()).epsilon(1e-3));
  }
}

TEST_CASE_TEMPLATE("rows of zeros, one row, tiny and huge costs", T, float, double) {
  Random random(904);
  Case<T> data(random, 20, 5, 3);
  data.constant = 0.0;
  for (index_t j = 0; j < 5; ++j) data.x(7, j) = T(0);
  CrammerSinger<T> zeros(data.x.read(), data.problem(), {}, 1);
  zeros.run(300, 1e-4, 1);
  check_state(zeros, data);
  for (const double cost : {1e-20, 1e-8, 1e4}) {
    const Case<T> scaled(random, 20, 5, 3, cost);
    CrammerSinger<T> solver(scaled.x.read(), scaled.problem(), {}, 1);
    solver.run(50, 1e-3, 1);
    CHECK(std::isfinite(solver.primal()));
    CHECK(solver.dual() <= solver.primal() * (1 + 1e-6));
  }
  const Case<T> one(random, 1, 5, 2);
  CrammerSinger<T> single(one.x.read(), one.problem(), {}, 1);
  single.run(10, 1e-6, 1);
  check_state(single, one);
}

TEST_CASE_TEMPLATE("every number of threads gives the same bits", T, float, double) {
  Random random(905);
  const Case<T> data(random, 4000, 90, 5, 0.01);
  for (const DualSolver kind : {DualSolver::sequential, DualSolver::frank_wolfe}) {
    Vector<double> first;
    for (const int n_threads : {1, 2, 7}) {
      CrammerSinger<T> solver(data.x.read(), data.problem(), {kind, 3000, 3}, n_threads);
      solver.run(3, 0.0, n_threads);
      Matrix<double> w(5, solver.features());
      solver.weights(w.view());
      Vector<double> bits{solver.primal(), solver.dual(), solver.gap()};
      bits.insert(bits.end(), w.read().data, w.read().data + w.rows() * w.cols());
      if (first.empty()) first = bits;
      CHECK(same_bits(first, bits));
    }
  }
}

TEST_CASE_TEMPLATE("errors of the SVM name the argument", T, float, double) {
  Random random(906);
  const Case<T> good(random, 6, 4, 3);
  const auto error = [&](const SvmProblem& problem, const SvmOptions& options = {}) {
    return message_of<std::invalid_argument>(
        [&] { CrammerSinger<T>(good.x.read(), problem, options, 1); });
  };
  const auto with = [&](auto change) {
    SvmProblem problem = good.problem();
    change(problem);
    return error(problem);
  };
  const Vector<std::int32_t> few(5, 0), bad{0, 1, 2, 3, 0, 0};
  const Vector<double> short_costs(5, 1.0), zero{1, 1, 1, 0, 1, 1};
  CHECK(starts_with(with([&](auto& p) { p.labels = read(few); }),
                    "labels: expected 6 entries, got 5"));
  CHECK(starts_with(with([&](auto& p) { p.labels = read(bad); }),
                    "labels: expected indices in [0, 3), got 3 in row 3"));
  CHECK(starts_with(with([&](auto& p) { p.costs = read(short_costs); }),
                    "costs: expected 6 entries, got 5"));
  CHECK(contains(with([&](auto& p) { p.costs = read(zero); }), "in row 3"));
  CHECK(starts_with(with([](auto& p) { p.n_classes = 1; }), "n_classes: expected at least 2"));
  CHECK(starts_with(with([](auto& p) { p.margin = 0.0; }), "margin: expected a positive number"));
  CHECK(starts_with(with([](auto& p) { p.constant = std::nan(""); }), "constant: expected"));
  CHECK(starts_with(error(good.problem(), {DualSolver::frank_wolfe, 0, 0}), "batch: expected"));
  CrammerSinger<T> solver(good.x.read(), good.problem(), {}, 1);
  Matrix<double> narrow(6, 2), infinite(6, 3), weights(2, 5);
  infinite(2, 1) = std::numeric_limits<double>::infinity();
  CHECK(starts_with(message_of<std::invalid_argument>([&] { solver.start(narrow.read(), 1); }),
                    "duals: expected shape (6, 3), got (6, 2)"));
  CHECK(starts_with(message_of<std::invalid_argument>([&] { solver.start(infinite.read(), 1); }),
                    "duals: expected finite numbers"));
  CHECK(starts_with(message_of<std::invalid_argument>([&] { solver.weights(weights.view()); }),
                    "out: "));
  CHECK(starts_with(message_of<std::invalid_argument>([&] { solver.duals(narrow.view()); }),
                    "out: "));
}
