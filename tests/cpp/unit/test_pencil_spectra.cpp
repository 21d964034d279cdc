// Pencils with known spectra, large enough for the Krylov solver and for tiled factors: fast and
// slow decay, clusters, multiple eigenvalues, indefinite, negative and vanishing numerators.
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr index_t kOrder = 256;  // the least that the Krylov solver takes

template <class F>
Vector<double> spectrum(index_t d, F&& value) {
  Vector<double> result(d);
  for (index_t k = 0; k < d; ++k) result[k] = value(static_cast<double>(k));
  return result;
}

// Both the solvers for few vectors find the n_vectors largest of a descending spectrum, with status
// ok. (The full solver meets Jacobi rotations in test_pencil.cpp.)
template <class T>
void check_spectrum(const Vector<double>& values, index_t n_vectors) {
  Random random(81);
  const Pencils<T> pencils = known_pencil<T>(random, values);
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;
  for (const Solver solver : {Solver::subset, Solver::krylov}) {
    INFO("solver " << static_cast<int>(solver));
    const Solved<T> solved = solve(pencils, with(solver, n_vectors));
    CHECK(solved.status_of(0) == Status::ok);
    CHECK(solved.found[0] == n_vectors);
    check_known(pencils, values, solved, solver == Solver::krylov ? tolerance : 0.0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("a decaying spectrum, which Krylov finishes itself", T, float, double) {
  const auto values = spectrum(kOrder, [](double k) { return 10 * std::pow(0.9, k); });
  check_spectrum<T>(values, 10);
  Random random(82);
  const Solved<T> solved = solve(known_pencil<T>(random, values), with(Solver::krylov, 10));
  CHECK(solved.solver[0] == static_cast<int>(Solver::krylov));
  CHECK(solved.iterations[0] > 0);
}

TEST_CASE("an evenly spaced spectrum, hard for Krylov") {
  check_spectrum<double>(spectrum(kOrder, [](double k) { return 2 - k / 460; }), 3);
}

TEST_CASE("a cluster at the top") {
  check_spectrum<double>(
      spectrum(kOrder, [](double k) { return k < 10 ? 3 - 1e-9 * k : 1 - k / 1000; }), 10);
}

TEST_CASE_TEMPLATE("a double and a triple eigenvalue at the top", T, float, double) {
  check_spectrum<T>(
      spectrum(kOrder, [](double k) { return k < 2   ? 5
                                             : k < 5 ? 3
                                                     : std::pow(0.95, k); }), 8);
}

TEST_CASE_TEMPLATE("an eigenvalue of multiplicity beyond a Krylov block", T, float, double) {
  check_spectrum<T>(
      spectrum(kOrder, [](double k) { return k < 30 ? 4 : 2 * std::pow(0.8, k - 30); }), 24);
}

// The space of a random block has as many eigenvectors of an eigenvalue as the block has columns.
TEST_CASE("a multiple eigenvalue and smaller ones beside it, all wanted") {
  for (const index_t copies : {5, 9, 12}) {
    for (const index_t above : {0, 5}) {
      CAPTURE(copies);
      CAPTURE(above);
      check_spectrum<double>(spectrum(kOrder,
                                      [&](double k) {
                                        const double first = static_cast<double>(above),
                                                     last = first + double(copies);
                                        return k < first  ? 50 - 9 * k
                                               : k < last ? 2
                                                          : 1.9 * std::exp(-(k - last) / 60);
                                      }),
                             20);
    }
  }
}

TEST_CASE("multiplicity in the middle of what is wanted") {
  check_spectrum<double>(
      spectrum(kOrder, [](double k) { return k < 3    ? 10 - k
                                             : k < 40 ? 4
                                                      : 1 / k; }), 20);
}

TEST_CASE_TEMPLATE("a few eigenvalues above a multiple of the denominator", T, float, double) {
  check_spectrum<T>(spectrum(kOrder, [](double k) { return k < 5 ? 6 - k : 1; }), 10);
}

TEST_CASE_TEMPLATE("numerator and denominator the same", T, float, double) {
  check_spectrum<T>(spectrum(kOrder, [](double) { return 1; }), 6);
}

TEST_CASE("an indefinite numerator") {
  check_spectrum<double>(
      spectrum(kOrder, [](double k) { return k < 20 ? 3 * std::pow(0.7, k) : -4 * (k / 460); }), 6);
}

TEST_CASE("a negative definite numerator") {
  check_spectrum<double>(spectrum(kOrder, [](double k) { return k < 6 ? -1 - k : -20 - k; }), 3);
}

TEST_CASE_TEMPLATE("a zero at the top of a negative numerator, whose image lacks it", T, float,
                   double) {
  check_spectrum<T>(spectrum(kOrder, [](double k) { return k < 4 ? -k : -400 - k; }), 3);
}

TEST_CASE_TEMPLATE("a numerator of low rank, more vectors wanted than its rank", T, float, double) {
  check_spectrum<T>(spectrum(kOrder, [](double k) { return k < 4 ? 4 - k : 0; }), 8);
}

TEST_CASE_TEMPLATE("a numerator of nothing", T, float, double) {
  Random random(83);
  for (const index_t d : {index_t{3}, kOrder}) {
    const Pencils<T> pencils = known_pencil<T>(random, Vector<double>(d, 0.0));
    for (const Solver solver : {Solver::subset, Solver::krylov}) {
      const Solved<T> solved = solve(pencils, with(solver, 2));
      CHECK(solved.status_of(0) == Status::ok);
      CHECK(solved.found[0] == 2);
      for (index_t j = 0; j < 2; ++j) {
        CHECK(solved.value(0, j) == T(0));
        CHECK(solved.residual(0, j) == T(0));
      }
    }
  }
}

TEST_CASE_TEMPLATE("an order that is tiled, with a rest", T, float, double) {
  check_spectrum<T>(spectrum(601, [](double k) { return 10 * std::pow(0.85, k); }), 5);
}

TEST_CASE("every eigenvector of a mid-sized problem") {
  const auto values = spectrum(90, [](double k) { return 3 - k / 30; });
  Random random(84);
  const Pencils<double> pencils = known_pencil<double>(random, values);
  for (const Solver solver : kSolvers) {
    const Solved<double> solved = solve(pencils, with(solver, 90));
    CHECK(solved.found[0] == 90);
    check_known(pencils, values, solved, 0.0);
  }
}

TEST_CASE_TEMPLATE("badly scaled columns leave eigenvalues as they are", T, float, double) {
  // D A D v = lambda D B D v has the eigenvalues of A v = lambda B v. D: powers of two, hence
  // exact.
  const auto values = spectrum(30, [](double k) { return 8 * std::pow(0.8, k); });
  Random random(85);
  Pencils<T> pencils = known_pencil<T>(random, values);
  for (index_t i = 0; i < 30; ++i) {
    for (index_t j = 0; j < 30; ++j) {
      const int exponent = static_cast<int>(i % 7 - 3) + static_cast<int>(j % 7 - 3);
      const T scale = std::ldexp(T(1), (sizeof(T) == 4 ? 3 : 8) * exponent);
      pencils.a[0](i, j) *= scale;
      pencils.b[0](i, j) *= scale;
    }
  }
  for (const Solver solver : {Solver::full, Solver::subset}) {
    const Solved<T> solved = solve(pencils, with(solver, 5));
    REQUIRE(solved.found[0] == 5);
    for (index_t j = 0; j < 5; ++j) {
      CHECK(static_cast<double>(solved.value(0, j)) ==
            doctest::Approx(values[j]).epsilon(sizeof(T) == 4 ? 1e-2 : 1e-6));
    }
  }
}

TEST_CASE_TEMPLATE("numerators so small or large that squares leave the range", T, float, double) {
  const auto values = spectrum(kOrder, [](double k) { return 10 * std::pow(0.9, k); });
  for (const int exponent : sizeof(T) == 4 ? Vector<int>{-100, -60, -40, 60}
                                           : Vector<int>{-960, -664, -530, 520}) {
    INFO("exponent " << exponent);
    Random random(86);
    Pencils<T> pencils = known_pencil<T>(random, values);
    for (index_t i = 0; i < kOrder; ++i) {
      for (index_t j = 0; j < kOrder; ++j)
        pencils.a[0](i, j) = std::ldexp(pencils.a[0](i, j), exponent);
    }
    for (const Solver solver : {Solver::subset, Solver::krylov}) {
      const Solved<T> solved = solve(pencils, with(solver, 10));
      REQUIRE(solved.status_of(0) == Status::ok);
      for (index_t rank = 0; rank < 10; ++rank) {
        const double value = static_cast<double>(std::ldexp(solved.value(0, rank), -exponent));
        CHECK(value == doctest::Approx(values[rank]).epsilon(sizeof(T) == 4 ? 1e-4 : 1e-10));
        CHECK(solved.residual(0, rank) > T(0));
      }
    }
  }
}
