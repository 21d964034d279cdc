// Pencils with known spectra, large enough for the Krylov solver and for tiled factors: fast and
// slow decay, clusters, multiple eigenvalues, indefinite, negative and vanishing numerators.
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr index_t kOrder = 256;  // the smallest order for which the Krylov solver runs

template <class F>
Vector<double> spectrum(index_t d, F&& value) {
  Vector<double> result(d);
  for (index_t k = 0; k < d; ++k) result[k] = value(static_cast<double>(k));
  return result;
}

// Checks that the solvers for few vectors find the n_vectors largest eigenvalues, with status ok.
// (test_pencil.cpp compares the full solver with Jacobi rotations.)
template <class T>
void check_spectrum(const Vector<double>& values, index_t n_vectors) {
  Random random(81);
  const Pencils<T> pencils = known_pencil<T>(random, values);
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;
  for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
    INFO("solver " << static_cast<int>(solver));
    const Solved<T> solved = solve(pencils, with(solver, n_vectors));
    CHECK(solved.status_of(0) == Status::ok);
    CHECK(solved.found[0] == n_vectors);
    check_known(pencils, values, solved, solver == Solver::krylov ? tolerance : 0.0);
    if (solver == Solver::tridiagonal) CHECK(solved.solver[0] == static_cast<int>(solver));
  }
}

// A tridiagonal numerator over the identity.
template <class T>
Pencils<T> tridiagonal_pencil(const Vector<double>& diagonal, const Vector<double>& off) {
  const index_t d = diagonal.size();
  Matrix<T> a(d, d), b(d, d);
  for (index_t i = 0; i < d; ++i) {
    a(i, i) = static_cast<T>(diagonal[i]);
    b(i, i) = T(1);
    if (i + 1 < d) a(i, i + 1) = a(i + 1, i) = static_cast<T>(off[i]);
  }
  return one_pencil(a, b);
}

// Compares the largest pairs of a tridiagonal matrix, found by its own solver, up to rounding.
template <class T>
void check_tridiagonal(const Vector<double>& diagonal, const Vector<double>& off,
                       index_t n_vectors) {
  const Pencils<T> pencils = tridiagonal_pencil<T>(diagonal, off);
  const Matrix<T>&a = pencils.a[0], &b = pencils.b[0];
  const reference::Table table(a.read());
  const reference::Eigenpairs expected = reference::symmetric_eigenpairs(table);
  const long double norm = reference::spectral_norm(table);
  const Solved<T> solved = solve(pencils, with(Solver::tridiagonal, n_vectors));
  CHECK(solved.solver[0] == static_cast<int>(Solver::tridiagonal));
  REQUIRE(solved.found[0] == n_vectors);
  for (index_t j = 0; j < n_vectors; ++j) {
    CHECK(std::fabs(static_cast<long double>(solved.value(0, j)) - expected.values[j]) <=
          20 * epsilon<T>() * norm);
  }
  check_pairs(a, b, T(0), solved, 0, norm, 1.0L, 1.0L, 0.0);
}

}  // namespace

TEST_CASE_TEMPLATE("a decaying spectrum, for which Krylov converges", T, float, double) {
  const auto values = spectrum(kOrder, [](double k) { return 10 * std::pow(0.9, k); });
  check_spectrum<T>(values, 10);
  Random random(82);
  const Solved<T> solved = solve(known_pencil<T>(random, values), with(Solver::krylov, 10));
  CHECK(solved.solver[0] == static_cast<int>(Solver::krylov));
  CHECK(solved.iterations[0] > 0);
}

TEST_CASE("an evenly spaced spectrum, for which Krylov is slow") {
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

// The Krylov space of a random block has at most as many eigenvectors of one eigenvalue as the
// block has columns.
TEST_CASE("a multiple eigenvalue and smaller eigenvalues, all wanted") {
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

TEST_CASE("a multiple eigenvalue in the middle of the wanted eigenvalues") {
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

TEST_CASE_TEMPLATE("a largest eigenvalue of zero above negative eigenvalues", T, float, double) {
  check_spectrum<T>(spectrum(kOrder, [](double k) { return k < 4 ? -k : -400 - k; }), 3);
}

TEST_CASE_TEMPLATE("a numerator of low rank, more vectors wanted than its rank", T, float, double) {
  check_spectrum<T>(spectrum(kOrder, [](double k) { return k < 4 ? 4 - k : 0; }), 8);
}

TEST_CASE_TEMPLATE("a numerator of zeros", T, float, double) {
  Random random(83);
  for (const index_t d : {index_t{3}, kOrder}) {
    const Pencils<T> pencils = known_pencil<T>(random, Vector<double>(d, 0.0));
    for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
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

TEST_CASE_TEMPLATE("an order that is not a multiple of the tile", T, float, double) {
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

TEST_CASE_TEMPLATE("badly scaled columns do not change eigenvalues", T, float, double) {
  // D A D v = lambda D B D v has the eigenvalues of A v = lambda B v. D has powers of two, so
  // that products with it are exact.
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

TEST_CASE_TEMPLATE("numerators so small or large that squares underflow or overflow", T, float,
                   double) {
  const auto values = spectrum(kOrder, [](double k) { return 10 * std::pow(0.9, k); });
  for (const int exponent :
       sizeof(T) == 4 ? Vector<int>{-100, -60, -40, 60} : Vector<int>{-960, -664, -530, 520}) {
    INFO("exponent " << exponent);
    Random random(86);
    Pencils<T> pencils = known_pencil<T>(random, values);
    for (index_t i = 0; i < kOrder; ++i) {
      for (index_t j = 0; j < kOrder; ++j)
        pencils.a[0](i, j) = std::ldexp(pencils.a[0](i, j), exponent);
    }
    for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
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

TEST_CASE_TEMPLATE("tridiagonal matrices with almost equal eigenvalues", T, float, double) {
  // Wilkinson's W21+, whose largest eigenvalues come in pairs that agree up to rounding, and copies
  // of it with a tiny or zero coupling.
  for (const double glue : {1.0, 1e-4, 1e-9, 1e-30, 0.0}) {
    INFO("glue " << glue);
    Vector<double> diagonal, off;
    for (int copy = 0; copy < 4; ++copy) {
      for (int i = 0; i < 21; ++i) {
        diagonal.push_back(std::abs(i - 10));
        off.push_back(i == 20 ? glue : 1.0);
      }
    }
    check_tridiagonal<T>(diagonal, off, 24);
  }
  Vector<double> diagonal(40), off(40);
  check_tridiagonal<T>(Vector<double>(40, 2.0), Vector<double>(40, -1.0), 20);
  check_tridiagonal<T>(spectrum(40, [](double k) { return k - 20; }), off, 8);
  check_tridiagonal<T>(spectrum(40, [](double k) { return std::pow(0.1, k); }),
                       spectrum(40, [](double k) { return 0.3 * std::pow(0.1, k); }), 8);
  diagonal[7] = -1;
  check_tridiagonal<T>(diagonal, off, 5);  // zeros at the top
  off[3] = 1;
  check_tridiagonal<T>(diagonal, off, 5);
}

TEST_CASE("a shift at an eigenvalue whose vector has entries with squares that underflow") {
  // In some of these, squares of the vector of the inverse iteration overflow.
  for (int first = 20; first < 34; ++first) {
    INFO("first " << first);
    Vector<double> diagonal(21, -0.5), off;
    for (index_t i = 0; i < 11; ++i) diagonal[i] = 0.25;
    diagonal[11] = 0.25 - 0x1p-51;
    for (const int exponent : {first, 50, 50, 50, 50}) {
      off.push_back(std::ldexp(1.0, -exponent));
      off.push_back(0.5);
    }
    off.resize(21);
    const Pencils<double> pencils = tridiagonal_pencil<double>(diagonal, off);
    const Solved<double> solved = solve(pencils, with(Solver::tridiagonal, 7));
    CHECK(solved.status_of(0) == Status::ok);
    check_pairs(pencils.a[0], pencils.b[0], 0.0, solved, 0, 1.0L, 1.0L, 1.0L, 0.0);
  }
}

TEST_CASE("clusters as wide as rounding, whose vectors need a second inverse iteration") {
  for (const double width : {1e-15, 1e-14, 1e-13, 1e-12}) {
    INFO("width " << width);
    Random random(87);
    const auto values =
        spectrum(160, [&](double k) { return k < 30 ? 1 - width * k / 30 : 0.9 - k / 200; });
    const Pencils<double> pencils = known_pencil<double>(random, values);
    const Solved<double> solved = solve(pencils, with(Solver::tridiagonal, 30));
    CHECK(solved.solver[0] == static_cast<int>(Solver::tridiagonal));
    check_known(pencils, values, solved, 0.0);
  }
}
