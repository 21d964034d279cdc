// Helpers of the tests of pencils: arrays for a solution, checks against A and B, and pencils with
// a known spectrum, for sizes at which Jacobi rotations are too slow.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "eigenfeat/pencil.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/pencil_reference.hpp"
#include "unit/support.hpp"

namespace eigenfeat::support {

inline constexpr Solver kSolvers[] = {Solver::full, Solver::subset, Solver::tridiagonal,
                                      Solver::krylov, Solver::automatic};

// Owns the outputs of solve_pencils, filled with numbers that the solver must overwrite.
template <class T>
struct Solved {
  Solved(index_t n, index_t m, index_t d)
      : n_vectors(m),
        order(d),
        eigenvalues(n * m, T(77)),
        vectors(n * m * d, T(77)),
        residuals(n * m, T(77)),
        found(n, -77),
        iterations(n, -77),
        solver(n, -77),
        status(n, -77) {}

  PencilSolution<T> views() {
    return {write(eigenvalues), write(vectors), write(residuals), write(found),
            write(iterations),  write(solver),  write(status)};
  }
  T value(index_t item, index_t rank) const { return eigenvalues[item * n_vectors + rank]; }
  T residual(index_t item, index_t rank) const { return residuals[item * n_vectors + rank]; }
  VectorView<const T> vector(index_t item, index_t rank) const {
    return {vectors.data() + (item * n_vectors + rank) * order, order};
  }
  Status status_of(index_t item) const { return static_cast<Status>(status[item]); }
  bool same_as(const Solved& other) const {
    return same_bits(eigenvalues, other.eigenvalues) && same_bits(vectors, other.vectors) &&
           same_bits(residuals, other.residuals) && found == other.found &&
           iterations == other.iterations && solver == other.solver && status == other.status;
  }

  index_t n_vectors, order;
  Vector<T> eigenvalues, vectors, residuals;
  Vector<index_t> found, iterations;
  Vector<int> solver, status;
};

// Owns the matrices of a problem.
template <class T>
struct Pencils {
  Vector<Matrix<T>> a, b;
  Vector<T> shifts;
  Vector<std::pair<index_t, index_t>> items;

  PencilProblem<T> problem() const {
    PencilProblem<T> result;
    for (const auto& matrix : a) result.numerators.push_back(matrix.read());
    for (const auto& matrix : b) result.denominators.push_back(matrix.read());
    result.shifts = shifts.empty() ? Vector<T>(b.size(), T(0)) : shifts;
    result.items = items;
    return result;
  }
  index_t order() const { return b.front().rows(); }
};

template <class T>
Pencils<T> one_pencil(const Matrix<T>& a, const Matrix<T>& b, T shift = T(0)) {
  return {{a}, {b}, {shift}, {{0, 0}}};
}

template <class T>
Solved<T> solve(const Pencils<T>& pencils, const PencilOptions& options) {
  Solved<T> solved(pencils.items.size(), options.n_vectors, pencils.order());
  solve_pencils<T>(pencils.problem(), options, solved.views());
  return solved;
}

inline PencilOptions with(Solver solver, index_t n_vectors, int n_threads = 1) {
  PencilOptions options;
  options.solver = solver;
  options.n_vectors = n_vectors;
  options.n_threads = n_threads;
  return options;
}

// Checks the solution of item `item`, for any spectrum:
//   - scaled residual ||A v - lambda B v|| / ((||A|| + |lambda| ||B||) ||v||) <= slack d eps or
//     the tolerance;
//   - |v_i^T B v_j - delta_ij| <= slack d eps cond(B);
//   - the largest entry of each v is positive, and lambda is in descending order.
template <class T>
void check_pairs(const Matrix<T>& a, const Matrix<T>& b, T shift, const Solved<T>& solved,
                 index_t item, long double a_norm, long double b_norm, long double b_condition,
                 double tolerance) {
  const index_t d = a.rows(), found = solved.found[item];
  const reference::Table table_a(a.read());
  reference::Table table_b(b.read());
  for (index_t i = 0; i < d; ++i) table_b(i, i) += static_cast<long double>(shift);
  const long double rounding = 20 * static_cast<long double>(d) * epsilon<T>();
  for (index_t j = 0; j < found; ++j) {
    const VectorView<const T> v = solved.vector(item, j);
    const T lambda = solved.value(item, j);
    long double length = 0;
    index_t peak = 0;
    for (index_t i = 0; i < d; ++i) {
      length += static_cast<long double>(v[i]) * static_cast<long double>(v[i]);
      if (std::fabs(v[i]) > std::fabs(v[peak])) peak = i;
    }
    length = std::sqrt(length);
    CHECK(v[peak] > 0);
    const long double size = std::fabs(static_cast<long double>(lambda));
    const long double allowed = rounding * (a_norm + size * b_norm) * length +
                                static_cast<long double>(tolerance) * size * b_norm * length;
    const auto av = reference::product(table_a, v), bv = reference::product(table_b, v);
    CHECK(reference::residual_norm(av, static_cast<long double>(lambda), bv) <= allowed);
    // The reported residual has an estimate of ||B|| that may be some per cent too small.
    CHECK(static_cast<long double>(solved.residual(item, j)) >= 0);
    CHECK(static_cast<long double>(solved.residual(item, j)) * size * b_norm * length <=
          2 * allowed);
    if (j > 0) CHECK(solved.value(item, j - 1) >= lambda);
    for (index_t k = 0; k <= j; ++k) {
      const long double inner = reference::dot(solved.vector(item, k), bv);
      CHECK(std::fabs(inner - (j == k ? 1 : 0)) <= rounding * b_condition);
    }
  }
}

// Checks that entries beyond `found` are NaN.
template <class T>
bool rest_is_nan(const Solved<T>& solved, index_t item) {
  for (index_t j = solved.found[item]; j < solved.n_vectors; ++j) {
    if (!std::isnan(solved.value(item, j)) || !std::isnan(solved.residual(item, j))) return false;
    for (index_t i = 0; i < solved.order; ++i) {
      if (!std::isnan(solved.vector(item, j)[i])) return false;
    }
  }
  return true;
}

// A = L Q diag(spectrum) Q^T L^T and B = L L^T, hence A v = lambda B v has the eigenvalues
// `spectrum`. L is bidiagonal with 1..2 on its diagonal and .3 below, so cond(B) <= (2.3 / .7)^2 <
// 11, ||B|| < 5.3; Q is a product of three random reflections.
template <class T>
Pencils<T> known_pencil(Random& random, const Vector<double>& spectrum) {
  const auto d = spectrum.size();
  Matrix<double> m(d, d);
  for (index_t i = 0; i < d; ++i) m(i, i) = spectrum[i];
  for (int reflection = 0; reflection < 3; ++reflection) {
    Vector<double> w(d), mw(d);
    double length = 0;
    for (double& entry : w) {
      entry = random.normal();
      length += entry * entry;
    }
    double wmw = 0;
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j < d; ++j) mw[i] += m(i, j) * w[j];
      wmw += w[i] * mw[i];
    }
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j < d; ++j) {
        m(i, j) += 4 * wmw * (w[i] / length) * (w[j] / length) -
                   2 * (w[i] * mw[j] + mw[i] * w[j]) / length;
      }
    }
  }
  Vector<double> diagonal(d);
  for (double& entry : diagonal) entry = 1 + random.uniform();
  const auto below = [](index_t i) { return i > 0 ? 0.3 : 0.0; };
  Matrix<T> a(d, d), b(d, d);
  for (index_t i = 0; i < d; ++i) {
    for (index_t j = 0; j <= i; ++j) {
      const auto left = [&](index_t column) {  // (L M)(i, column)
        return diagonal[i] * m(i, column) + (i > 0 ? below(i) * m(i - 1, column) : 0.0);
      };
      const double entry = left(j) * diagonal[j] + (j > 0 ? left(j - 1) * below(j) : 0.0);
      a(i, j) = a(j, i) = static_cast<T>(entry);
    }
    b(i, i) = static_cast<T>(diagonal[i] * diagonal[i] + below(i) * below(i));
    if (i > 0) b(i, i - 1) = b(i - 1, i) = static_cast<T>(below(i) * diagonal[i - 1]);
  }
  return one_pencil(a, b);
}

inline constexpr long double kKnownNorm = 5.3L;
inline constexpr long double kKnownCondition = 11;

// Checks the pairs of item 0 of `solved`, whose descending spectrum is known.
template <class T>
void check_known(const Pencils<T>& pencils, const Vector<double>& spectrum, const Solved<T>& solved,
                 double tolerance) {
  long double size = 0;
  for (const double value : spectrum)
    size = std::max(size, std::fabs(static_cast<long double>(value)));
  const long double rounding =
      20 * static_cast<long double>(spectrum.size()) * epsilon<T>() * kKnownCondition * size;
  REQUIRE(solved.found[0] <= solved.n_vectors);
  for (index_t j = 0; j < solved.found[0]; ++j) {
    const long double expected = static_cast<long double>(spectrum[j]);
    const long double allowed =
        rounding + static_cast<long double>(tolerance) * kKnownCondition * std::fabs(expected);
    CHECK(std::fabs(static_cast<long double>(solved.value(0, j)) - expected) <= allowed);
  }
  check_pairs(pencils.a[0], pencils.b[0], pencils.shifts[0], solved, 0, kKnownNorm * size,
              kKnownNorm, kKnownCondition, tolerance);
}

}  // namespace eigenfeat::support
