// Pencils, against numbers by hand, and every solver against Jacobi rotations.
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

// Compares one item with the reference, for every solver.
template <class T>
void check_against_jacobi(const Matrix<T>& a, const Matrix<T>& b, T shift, index_t n_vectors) {
  const reference::Table table_a(a.read());
  reference::Table table_b(b.read());
  for (index_t i = 0; i < b.rows(); ++i) table_b(i, i) += static_cast<long double>(shift);
  const reference::Eigenpairs expected = reference::pencil_eigenpairs(table_a, table_b);
  const reference::Eigenpairs of_b = reference::symmetric_eigenpairs(table_b);
  const long double a_norm = reference::spectral_norm(table_a);
  // |lambda - lambda'| <= c d eps ||A|| / lambda_min(B)
  const long double allowed =
      20 * static_cast<long double>(a.rows()) * epsilon<T>() * a_norm / of_b.values.back();
  for (const Solver solver : kSolvers) {
    for (const index_t m : {n_vectors, a.rows()}) {
      const Solved<T> solved = solve(one_pencil(a, b, shift), with(solver, m));
      CHECK(solved.found[0] == m);
      CHECK(solved.solver[0] != static_cast<int>(Solver::automatic));
      for (index_t j = 0; j < solved.found[0]; ++j) {
        CHECK(std::fabs(static_cast<long double>(solved.value(0, j)) - expected.value(j)) <=
              allowed);
      }
      check_pairs(a, b, shift, solved, 0, a_norm, of_b.values.front(),
                  of_b.values.front() / of_b.values.back(), 0.0);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("diagonal matrices, by hand", T, float, double) {
  // A = diag(2, 12, 64), B = diag(1, 4, 16): lambda = 4 (third axis), 3 (second), 2 (first).
  const Matrix<T> a(3, 3, {2, 0, 0, 0, 12, 0, 0, 0, 64}), b(3, 3, {1, 0, 0, 0, 4, 0, 0, 0, 16});
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(one_pencil(a, b), with(solver, 3));
    REQUIRE(solved.found[0] == 3);
    CHECK(solved.status_of(0) == Status::ok);
    const double lambda[] = {4, 3, 2}, length[] = {0.25, 0.5, 1};
    for (index_t j = 0; j < 3; ++j) {
      CHECK(static_cast<double>(solved.value(0, j)) == doctest::Approx(lambda[j]));
      for (index_t i = 0; i < 3; ++i) {
        CHECK(static_cast<double>(solved.vector(0, j)[i]) ==
              doctest::Approx(i == 2 - j ? length[j] : 0.0));
      }
      CHECK(solved.residual(0, j) <= static_cast<T>(20 * epsilon<T>()));
    }
  }
}

TEST_CASE_TEMPLATE("a two by two problem, by hand", T, float, double) {
  // A = [2 1; 1 2], B = I: (1, 1) / sqrt 2 with 3, then (1, -1) / sqrt 2 with 1.
  const Matrix<T> a(2, 2, {2, 1, 1, 2}), b(2, 2, {1, 0, 0, 1});
  const double half = std::sqrt(0.5);
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(one_pencil(a, b), with(solver, 2));
    CHECK(static_cast<double>(solved.value(0, 0)) == doctest::Approx(3));
    CHECK(static_cast<double>(solved.value(0, 1)) == doctest::Approx(1));
    CHECK(static_cast<double>(solved.vector(0, 0)[0]) == doctest::Approx(half));
    CHECK(static_cast<double>(solved.vector(0, 0)[1]) == doctest::Approx(half));
    const VectorView<const T> second = solved.vector(0, 1);
    CHECK(std::fabs(static_cast<double>(second[0])) == doctest::Approx(half));
    CHECK(static_cast<double>(second[0] + second[1]) == doctest::Approx(0));
  }
}

TEST_CASE_TEMPLATE("one feature", T, float, double) {
  const Matrix<T> a(1, 1, {6}), b(1, 1, {3});
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(one_pencil(a, b, T(1)), with(solver, 1));
    CHECK(solved.found[0] == 1);
    CHECK(static_cast<double>(solved.value(0, 0)) == doctest::Approx(1.5));
    CHECK(static_cast<double>(solved.vector(0, 0)[0]) == doctest::Approx(0.5));
  }
}

TEST_CASE_TEMPLATE("the shift is added to the denominator's diagonal", T, float, double) {
  const Matrix<T> a(2, 2, {4, 0, 0, 2}), zero(2, 2);
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(one_pencil(a, zero, T(2)), with(solver, 2));
    CHECK(solved.status_of(0) == Status::ok);
    CHECK(static_cast<double>(solved.value(0, 0)) == doctest::Approx(2));
    CHECK(static_cast<double>(solved.value(0, 1)) == doctest::Approx(1));
  }
}

// One numerator that is also a denominator, with a ridge on all entries but the last.
TEST_CASE_TEMPLATE("shifts of single entries agree with a matrix that has them", T, float, double) {
  Random random(75);
  for (const index_t d : {index_t{1}, index_t{7}, index_t{470}}) {
    const Matrix<T> a = random.positive_definite<T>(d, 0.5),
                    b = random.positive_definite<T>(d, 0.3);
    Pencils<T> shifted;
    shifted.a = shifted.b = {a, b};
    shifted.items = {{0, 1}, {1, 0}};
    shifted.shifts.assign(2 * d, T(0));
    Pencils<T> formed = shifted;
    for (index_t j = 0; j < 2; ++j) {
      for (index_t i = 0; i + 1 < d; ++i) {
        const T shift = static_cast<T>(1 + j) * T(0.5);
        shifted.shifts[j * d + i] = shift;
        formed.b[j](i, i) += shift;
      }
    }
    const index_t m = std::min<index_t>(d, 3);
    for (const Solver solver :
         {Solver::full, Solver::subset, Solver::tridiagonal, Solver::krylov}) {
      const Solved<T> got = solve(shifted, with(solver, m, 2));
      const Solved<T> expected = solve(formed, with(solver, m, 2));
      for (index_t item = 0; item < 2; ++item) {
        CHECK(got.status_of(item) == Status::ok);
        for (index_t rank = 0; rank < m; ++rank) {
          CHECK(static_cast<double>(got.value(item, rank)) ==
                doctest::Approx(static_cast<double>(expected.value(item, rank)))
                    .epsilon(sizeof(T) == 4 ? 1e-4 : 1e-10));
        }
      }
    }
  }
}

TEST_CASE("pencil_bytes counts factors, scratch and the solution") {
  PencilOptions options = with(Solver::subset, 10, 1);
  const double matrix = 8.0 * 100 * 100, vectors = 8.0 * 100 * 10;
  CHECK(pencil_bytes<double>(100, 0, 0, options) == 0.0);
  CHECK(pencil_bytes<double>(100, 5, 1, options) == 2 * matrix + 5 * vectors);
  CHECK(pencil_bytes<double>(100, 6, 3, options) == 4 * matrix + 6 * vectors);
  options.solver = Solver::full;
  CHECK(pencil_bytes<double>(100, 5, 1, options) == 3 * matrix + 5 * vectors);
  CHECK(pencil_bytes<float>(100, 5, 1, options) == (3 * matrix + 5 * vectors) / 2);
  options.solver = Solver::tridiagonal;
  CHECK(pencil_bytes<double>(100, 5, 1, options) == 3 * matrix + 5 * vectors);
  CHECK(pencil_bytes<float>(100, 5, 1, options) == (4 * matrix + 5 * vectors) / 2);
  // Factors with their inverses take one and a half matrices each.
  options.solver = Solver::krylov;
  const double large = 8.0 * 1000 * 1000;
  const double one = pencil_bytes<double>(1000, 8, 1, options);
  CHECK(one > 1.5 * large);
  // Copies of numerators that items share take 64 MiB at most.
  CHECK(pencil_bytes<double>(1000, 800, 100, options) < one + 800 * 8e4 + 64 * 1048576.0);
  // Many denominators: one factor of the first, and one for each thread.
  CHECK(pencil_bytes<double>(1000, 100, 100, options) > 2 * 1.5 * large);
  CHECK(pencil_bytes<double>(1000, 100, 100, options) < 3 * 1.8 * large + 64 * 1048576.0);
  // Few denominators: as many factors as have eight items for each thread.
  options.n_threads = 40;
  CHECK(pencil_bytes<double>(1000, 100, 100, options) > 8 * 1.5 * large);
  options.n_threads = 1;
  CHECK(pencil_bytes<double>(20000, 100, 100, options) < 2 * 9.6e9);  // one factor at a time
}

TEST_CASE_TEMPLATE("every solver agrees with Jacobi rotations", T, float, double) {
  Random random(71);
  for (const index_t d : {index_t{2}, index_t{5}, index_t{17}, index_t{40}}) {
    const index_t few = std::max<index_t>(1, d / 3);
    check_against_jacobi(random.positive_definite<T>(d, 0.0), random.positive_definite<T>(d, 1.0),
                         T(0), few);
    check_against_jacobi(random.symmetric<T>(d), random.positive_definite<T>(d, 0.2), T(0.5), few);
  }
}

TEST_CASE_TEMPLATE("items of a batch agree with batches of one item", T, float, double) {
  Random random(74);
  Pencils<T> pencils;
  pencils.a = {random.positive_definite<T>(15, 0.1), random.symmetric<T>(15)};
  pencils.b = {random.positive_definite<T>(15, 1.0), random.positive_definite<T>(15, 0.2)};
  pencils.shifts = {T(0), T(0.5)};
  pencils.items = {{1, 1}, {0, 0}, {1, 0}, {1, 1}};
  for (const Solver solver : {Solver::full, Solver::subset, Solver::tridiagonal, Solver::krylov}) {
    const Solved<T> batch = solve(pencils, with(solver, 4, 2));
    for (index_t item = 0; item < 4; ++item) {
      const auto [i, j] = pencils.items[item];
      const Solved<T> alone =
          solve(one_pencil(pencils.a[i], pencils.b[j], pencils.shifts[j]), with(solver, 4));
      for (index_t rank = 0; rank < 4; ++rank) {
        CHECK(batch.value(item, rank) == alone.value(0, rank));
        for (index_t k = 0; k < 15; ++k)
          CHECK(batch.vector(item, rank)[k] == alone.vector(0, rank)[k]);
      }
    }
  }
}

TEST_CASE_TEMPLATE("a matrix may be numerator and denominator, with a leading dimension", T, float,
                   double) {
  Random random(72);
  const index_t d = 6;
  const Matrix<T> first = random.positive_definite<T>(d, 0.5),
                  second = random.positive_definite<T>(d, 0.5);
  Matrix<T> padded(d, d, Order::rows, 3);
  for (index_t i = 0; i < d; ++i) {
    for (index_t j = 0; j < d; ++j) padded(i, j) = second(i, j);
  }
  for (const Solver solver : kSolvers) {
    const Solved<T> plain = solve(one_pencil(first, second), with(solver, 3));
    CHECK(solve(one_pencil(first, padded), with(solver, 3)).same_as(plain));
    const Solved<T> same = solve(one_pencil(second, padded), with(solver, d));
    for (index_t j = 0; j < d; ++j)
      CHECK(static_cast<double>(same.value(0, j)) == doctest::Approx(1));
  }
  CHECK(padded.padding_untouched());
}

TEST_CASE_TEMPLATE("inputs do not change", T, float, double) {
  Random random(73);
  const Pencils<T> pencils =
      one_pencil(random.symmetric<T>(9), random.positive_definite<T>(9, 1.0), T(0.25));
  const Pencils<T> copy = pencils;
  for (const Solver solver : kSolvers) solve(pencils, with(solver, 4));
  for (index_t i = 0; i < 9; ++i) {
    for (index_t j = 0; j < 9; ++j) {
      CHECK(pencils.a[0](i, j) == copy.a[0](i, j));
      CHECK(pencils.b[0](i, j) == copy.b[0](i, j));
    }
  }
}

TEST_CASE_TEMPLATE("the largest entry is positive, the first of them on ties", T, float, double) {
  // Eigenvectors of the exchange matrix: (1, 1) and (1, -1) or (-1, 1).
  const Matrix<T> a(2, 2, {0, 1, 1, 0}), b(2, 2, {1, 0, 0, 1});
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(one_pencil(a, b), with(solver, 2));
    const VectorView<const T> v = solved.vector(0, 1);
    CHECK(static_cast<double>(solved.value(0, 1)) == doctest::Approx(-1));
    if (std::fabs(v[0]) >= std::fabs(v[1])) {
      CHECK(v[0] > 0);
    } else {
      CHECK(v[1] > 0);
    }
  }
}

TEST_CASE("the automatic choice is the cheapest solver for the size") {
  CHECK(choose_solver(1, 1, 1) != Solver::automatic);
  CHECK(choose_solver(64, 20, 9) == Solver::tridiagonal);
  CHECK(choose_solver(64, 64, 9) != Solver::krylov);
  CHECK(choose_solver(3600, 20, 9) == Solver::krylov);
  CHECK(choose_solver(300, 20, 9) == Solver::krylov);
  CHECK(choose_solver(255, 1, 9) != Solver::krylov);
  CHECK(choose_solver(2000, 2000, 1) != Solver::krylov);
}
