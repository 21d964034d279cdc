// Pencils with rows of zeros, which the Krylov solver leaves out. A column that is zero in a class
// gives such a row of its moments; with a ridge, a row with only a diagonal entry.
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr index_t kOrder = 700;

// sign F F^T on indices i with i % 10 in [from, to), zeros elsewhere. Columns of F decrease.
template <class T>
Matrix<T> supported(Random& random, index_t from, index_t to, double sign = 1.0) {
  constexpr index_t kRank = 90;
  Matrix<double> factor(kOrder, kRank);
  for (index_t i = 0; i < kOrder; ++i) {
    for (index_t k = 0; k < kRank; ++k) {
      const double entry = random.normal() * std::pow(0.9, static_cast<double>(k));
      factor(i, k) = i % 10 >= from && i % 10 < to ? entry : 0.0;
    }
  }
  Matrix<T> result(kOrder, kOrder);
  for (index_t i = 0; i < kOrder; ++i) {
    for (index_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (index_t k = 0; k < kRank; ++k) sum += factor(i, k) * factor(j, k);
      result(i, j) = result(j, i) = static_cast<T>(sign * sum / 100);
    }
  }
  return result;
}

// Frobenius norm of a numerator: errors of eigenvalues near zero are multiples of eps times this
// norm.
template <class T>
double norm_of(const Matrix<T>& matrix) {
  double sum = 0;
  for (index_t i = 0; i < kOrder; ++i) {
    for (index_t j = 0; j < kOrder; ++j)
      sum += static_cast<double>(matrix(i, j)) * static_cast<double>(matrix(i, j));
  }
  return std::sqrt(sum);
}

// Compares the pairs of Krylov's solver with those of LAPACK's for the whole matrices.
template <class T>
void check_against_full(const Pencils<T>& pencils, index_t n_vectors, bool by_krylov) {
  const Solved<T> expected = solve(pencils, with(Solver::full, n_vectors));
  const Solved<T> solved = solve(pencils, with(Solver::krylov, n_vectors));
  const double allowed = sizeof(T) == 4 ? 2e-4 : 1e-10;
  // Error of eigenvalues near zero, relative to the norm: a quarter of sqrt(d) eps in float.
  const double floor = sizeof(T) == 4 ? 4e-3 : 1e-3;
  for (index_t item = 0; item < pencils.items.size(); ++item) {
    CAPTURE(item);
    CHECK(solved.status_of(item) == Status::ok);
    REQUIRE(solved.found[item] == n_vectors);
    if (by_krylov) CHECK(solved.solver[item] == static_cast<int>(Solver::krylov));
    const double largest = std::fabs(static_cast<double>(expected.value(item, 0)));
    const double norm = norm_of(pencils.a[pencils.items[item].first]);
    for (index_t rank = 0; rank < n_vectors; ++rank) {
      CHECK(std::fabs(static_cast<double>(solved.value(item, rank)) -
                      static_cast<double>(expected.value(item, rank))) <=
            allowed * std::max(largest, floor * norm));
      CHECK(solved.residual(item, rank) <= static_cast<T>(sizeof(T) == 4 ? 1e-4 : 1e-10));
    }
  }
  CHECK(solve(pencils, with(Solver::krylov, n_vectors, 2)).same_as(solved));
}

}  // namespace

TEST_CASE_TEMPLATE("rows of zeros in both matrices, in one matrix and in none", T, float, double) {
  Random random(91);
  Pencils<T> pencils;
  pencils.a = {supported<T>(random, 0, 6), supported<T>(random, 3, 8), supported<T>(random, 0, 10)};
  pencils.b = {supported<T>(random, 1, 7), supported<T>(random, 0, 10)};
  pencils.shifts = {T(0.5), T(0.75)};
  for (index_t a = 0; a < 3; ++a) {
    for (index_t b = 0; b < 2; ++b) pencils.items.emplace_back(a, b);
  }
  check_against_full(pencils, 12, true);
}

TEST_CASE_TEMPLATE("a diagonal denominator, whose entries differ", T, float, double) {
  Random random(92);
  Pencils<T> pencils;
  pencils.a = {supported<T>(random, 2, 5)};
  pencils.b = {Matrix<T>(kOrder, kOrder)};
  for (index_t i = 0; i < kOrder; ++i)
    pencils.b[0](i, i) = static_cast<T>(0.1 + 0.01 * static_cast<double>(i % 7));
  pencils.shifts.assign(kOrder, T(0));
  for (index_t i = 0; i < kOrder; ++i)
    pencils.shifts[i] = static_cast<T>(0.05 * static_cast<double>(i % 3));
  pencils.items = {{0, 0}};
  check_against_full(pencils, 10, true);
}

TEST_CASE_TEMPLATE("eigenvalues of zero from rows left out come before negative eigenvalues", T,
                   float, double) {
  Random random(93);
  Pencils<T> pencils;
  pencils.a = {supported<T>(random, 0, 6, -1.0), Matrix<T>(kOrder, kOrder)};
  // Two positive eigenvalues, then zeros.
  pencils.a[1](3, 3) = T(2);
  pencils.a[1](14, 14) = T(1);
  pencils.a[1](20, 20) = T(-3);
  pencils.b = {supported<T>(random, 0, 6)};
  pencils.shifts = {T(0.5)};
  pencils.items = {{0, 0}, {1, 0}};
  check_against_full(pencils, 9, false);
}

TEST_CASE_TEMPLATE("no row of B is zero, but half of the rows of A are", T, float, double) {
  // A is negative on its 350 nonzero rows, so that eigenvalues of zero come from the other rows.
  Random random(94);
  Pencils<T> pencils;
  pencils.a = {supported<T>(random, 0, 5, -1.0)};
  pencils.b = {supported<T>(random, 0, 10)};
  pencils.shifts = {T(1)};
  pencils.items = {{0, 0}};
  check_against_full(pencils, 7, false);
}

TEST_CASE_TEMPLATE("the subset solver continues with the whole factor if Krylov gives up", T, float,
                   double) {
  Random random(95);
  Pencils<T> pencils;
  // Evenly spread over 420 rows: too slow for the Krylov solver in single or double precision.
  pencils.a = {Matrix<T>(kOrder, kOrder)};
  for (index_t i = 0; i < kOrder; ++i) {
    pencils.a[0](i, i) = i % 10 < 6 ? static_cast<T>(1 + 1e-5 * static_cast<double>(i)) : T(0);
  }
  pencils.b = {supported<T>(random, 2, 9)};
  pencils.shifts = {T(2)};
  pencils.items = {{0, 0}};
  check_against_full(pencils, 40, false);
}

TEST_CASE_TEMPLATE("a denominator that is singular only in a row left out", T, float, double) {
  Random random(96);
  for (const double fault : {0.0, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    Pencils<T> pencils = one_pencil(supported<T>(random, 0, 6), supported<T>(random, 0, 6));
    pencils.shifts.assign(kOrder, T(1));
    pencils.shifts[8] = static_cast<T>(fault);
    const Solved<T> solved = solve(pencils, with(Solver::krylov, 5));
    CHECK(solved.status_of(0) == Status::not_positive_definite);
    CHECK(rest_is_nan(solved, 0));
  }
}

TEST_CASE("a NaN in a row of zeros is found") {
  Random random(97);
  Pencils<double> pencils =
      one_pencil(supported<double>(random, 0, 6), supported<double>(random, 0, 6), 1.0);
  pencils.a[0](8, 8) = NAN;
  const Solved<double> solved = solve(pencils, with(Solver::krylov, 5));
  CHECK(solved.status_of(0) != Status::ok);
}
