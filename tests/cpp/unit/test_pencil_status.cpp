// Pencils: thresholds, denominators that are not positive definite, and misuse.
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
void check_refused(const Solved<T>& solved, index_t item) {
  CHECK(solved.status_of(item) == Status::not_positive_definite);
  CHECK(solved.found[item] == 0);
  CHECK(rest_is_nan(solved, item));
}

PencilOptions above(Solver solver, index_t n_vectors, double threshold) {
  PencilOptions options = with(solver, n_vectors);
  options.threshold = threshold;
  return options;
}

}  // namespace

TEST_CASE_TEMPLATE("a threshold keeps the pairs at or above it", T, float, double) {
  const Matrix<T> a(3, 3, {2, 0, 0, 0, 12, 0, 0, 0, 64}),
      b(3, 3, {1, 0, 0, 0, 4, 0, 0, 0, 16});  // eigenvalues 4, 3, 2
  for (const Solver solver : kSolvers) {
    for (const auto& [threshold, count] :
         {std::pair<double, index_t>{4.5, 0}, {3.5, 1}, {2.5, 2}, {1.5, 3}}) {
      const Solved<T> solved = solve(one_pencil(a, b), above(solver, 3, threshold));
      CHECK(solved.status_of(0) == Status::ok);
      CHECK(solved.found[0] == count);
      CHECK(rest_is_nan(solved, 0));
      for (index_t j = 0; j < count; ++j)
        CHECK(solved.value(0, j) == doctest::Approx(4.0 - static_cast<double>(j)));
    }
  }
  const Solved<T> few =
      solve(one_pencil(a, b), above(Solver::full, 1, 1.5));  // at most n_vectors pairs
  CHECK(few.found[0] == 1);
}

TEST_CASE_TEMPLATE("a threshold at large order: Krylov finds the same pairs in no more steps", T,
                   float, double) {
  Vector<double> values(448);
  for (index_t k = 0; k < values.size(); ++k)
    values[k] = 10 * std::pow(0.9, static_cast<double>(k));
  Random random(91);
  const Pencils<T> pencils = known_pencil<T>(random, values);
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;
  for (const auto& [threshold, count] : {std::pair<double, index_t>{11, 0}, {4, 9}}) {
    for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
      const Solved<T> solved = solve(pencils, above(solver, 12, threshold));
      CHECK(solved.status_of(0) == Status::ok);
      CHECK(solved.found[0] == count);
      CHECK(rest_is_nan(solved, 0));
      check_known(pencils, values, solved, tolerance);
    }
  }
  CHECK(solve(pencils, above(Solver::krylov, 12, 4)).iterations[0] <=
        solve(pencils, with(Solver::krylov, 12)).iterations[0]);
}

TEST_CASE_TEMPLATE("denominators that are not positive definite have their status", T, float,
                   double) {
  const Matrix<T> a(2, 2, {2, 1, 1, 2});
  const Matrix<T> singular(2, 2, {1, 1, 1, 1}), indefinite(2, 2, {1, 2, 2, 1}),
      negative(2, 2, {-1, 0, 0, -1});
  const Matrix<T> zero(2, 2), blank_column(2, 2, {1, 0, 0, 0});
  const Matrix<T> undefined(2, 2, {1, 0, 0, std::nan("")}), infinite(2, 2, {1, 0, 0, HUGE_VAL});
  for (const Solver solver : kSolvers) {
    for (const Matrix<T>* b :
         {&singular, &indefinite, &negative, &zero, &blank_column, &undefined, &infinite}) {
      check_refused(solve(one_pencil(a, *b), with(solver, 2)), 0);
    }
    CHECK(solve(one_pencil(a, singular, T(0.5)), with(solver, 2)).status_of(0) ==
          Status::ok);  // eigenvalues .5, 2.5
  }
  const Vector<T> none(2, T(0)), half(2, T(0.5));
  for (const Matrix<T>* b :
       {&singular, &indefinite, &negative, &zero, &blank_column, &undefined, &infinite}) {
    CHECK_FALSE(is_positive_definite<T>(b->read(), support::read(none), 1));
  }
  CHECK(is_positive_definite<T>(singular.read(), support::read(half), 1));
  CHECK(is_positive_definite<T>(a.read(), support::read(none), 1));
  CHECK_THROWS_AS(is_positive_definite<T>(a.read(), {none.data(), 1}, 1), std::invalid_argument);
}

TEST_CASE_TEMPLATE("a singular denominator does not change other items of the batch", T, float,
                   double) {
  Random random(92);
  const index_t d = 12;
  Pencils<T> pencils;
  pencils.a = {random.positive_definite<T>(d, 0.1), random.positive_definite<T>(d, 0.1)};
  Matrix<T> low_rank(d, d);
  for (index_t i = 0; i < d; ++i) {
    for (index_t j = 0; j < d; ++j) low_rank(i, j) = static_cast<T>((i + 1) * (j + 1));
  }
  pencils.b = {random.positive_definite<T>(d, 1.0), low_rank, random.positive_definite<T>(d, 1.0)};
  pencils.items = {{0, 1}, {0, 0}, {1, 1}, {1, 2}};
  for (const Solver solver : kSolvers) {
    const Solved<T> solved = solve(pencils, with(solver, 4));
    check_refused(solved, 0);
    check_refused(solved, 2);
    const Solved<T> alone = solve(one_pencil(pencils.a[1], pencils.b[2]), with(solver, 4));
    CHECK(solved.status_of(1) == Status::ok);
    CHECK(solved.status_of(3) == Status::ok);
    for (index_t j = 0; j < 4; ++j) {
      CHECK(static_cast<double>(solved.value(3, j)) ==
            doctest::Approx(static_cast<double>(alone.value(0, j))));
    }
  }
}

TEST_CASE("a singular denominator of large order, with a ridge and without") {
  using T = double;
  Random random(93);
  const index_t d = 520;  // three tiles
  Pencils<T> pencils = known_pencil<T>(random, Vector<double>(d, 1.0));
  for (index_t i = 0; i < d; ++i) pencils.b[0](i, 470) = pencils.b[0](470, i) = T(0);
  for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
    check_refused(solve(pencils, with(solver, 3)), 0);
    Pencils<T> mended = pencils;
    mended.shifts = {T(0.5)};
    CHECK(solve(mended, with(solver, 3)).status_of(0) == Status::ok);
  }
}

TEST_CASE_TEMPLATE("columns of tiny and huge scale do not count as singular", T, float, double) {
  const double unit = sizeof(T) == 4 ? 1e8 : 1e60;
  Matrix<T> a(3, 3, {2, 0, 0, 0, 12, 0, 0, 0, 64}), b(3, 3, {1, 0.5, 0, 0.5, 4, 0, 0, 0, 16});
  for (index_t i = 0; i < 3; ++i) {
    for (index_t j = 0; j < 3; ++j) {
      const double scale = (i == 0   ? 1 / unit
                            : i == 2 ? unit
                                     : 1) *
                           (j == 0   ? 1 / unit
                            : j == 2 ? unit
                                     : 1);
      a(i, j) *= static_cast<T>(scale);
      b(i, j) *= static_cast<T>(scale);
    }
  }
  for (const Solver solver : {Solver::full, Solver::subset}) {
    CHECK(solve(one_pencil(a, b), with(solver, 1)).status_of(0) != Status::not_positive_definite);
  }
}

TEST_CASE_TEMPLATE("a numerator with NaN never has status ok", T, float, double) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Matrix<T> a(3, 3, {2, 0, 0, 0, 3, 0, 0, 0, 4}), b(3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1});
    a(1, 2) = a(2, 1) = static_cast<T>(bad);
    for (const Solver solver : kSolvers) {
      const Solved<T> solved = solve(one_pencil(a, b), with(solver, 2));
      CHECK(solved.status_of(0) != Status::ok);
      CHECK(solved.found[0] == 0);
      CHECK(rest_is_nan(solved, 0));
    }
  }
}

TEST_CASE_TEMPLATE("a tolerance below rounding still gives the result", T, float, double) {
  Random random(94);
  const Pencils<T> pencils =
      one_pencil(random.symmetric<T>(20), random.positive_definite<T>(20, 0.5));
  PencilOptions options = with(Solver::full, 5);
  const Solved<T> usual = solve(pencils, options);
  options.tolerance = 1e-30;
  const Solved<T> strict = solve(pencils, options);
  CHECK((strict.status_of(0) == Status::ok || strict.status_of(0) == Status::inaccurate));
  CHECK(strict.found[0] == 5);
  CHECK(same_bits(strict.eigenvalues, usual.eigenvalues));
  CHECK(same_bits(strict.vectors, usual.vectors));
}

TEST_CASE_TEMPLATE("a batch without items", T, float, double) {
  Random random(95);
  Pencils<T> pencils = one_pencil(random.symmetric<T>(3), random.positive_definite<T>(3, 0.5));
  pencils.items.clear();
  for (const Solver solver : kSolvers) CHECK_NOTHROW(solve(pencils, with(solver, 2)));
}

TEST_CASE_TEMPLATE("errors name the argument", T, float, double) {
  Random random(96);
  const Pencils<T> good = one_pencil(random.symmetric<T>(3), random.positive_definite<T>(3, 0.5));
  const auto message = [](const Pencils<T>& pencils, index_t n_vectors) {
    return message_of<std::invalid_argument>(
        [&] { solve(pencils, with(Solver::automatic, n_vectors)); });
  };
  CHECK(message(good, 2) == "");
  CHECK(starts_with(message(good, 0), "n_vectors:"));
  CHECK(starts_with(message(good, 4), "n_vectors:"));
  Pencils<T> bad = good;
  bad.a[0] = random.symmetric<T>(4);
  CHECK(starts_with(message(bad, 2), "A:"));
  bad = good;
  bad.b.push_back(random.symmetric<T>(4));
  CHECK(starts_with(message(bad, 2), "B:"));
  bad = good;
  bad.b.push_back(random.normal_matrix<T>(3, 4));
  CHECK(starts_with(message(bad, 2), "B:"));
  bad = good;
  bad.shifts = {T(0), T(0)};
  CHECK(starts_with(message(bad, 2), "shifts:"));
  for (const auto& item : {std::pair<index_t, index_t>{1, 0}, {0, 1}, {-1, 0}, {0, -1}}) {
    bad = good;
    bad.items.push_back(item);
    CHECK(starts_with(message(bad, 2), "items:"));
  }
  Solved<T> too_small(1, 1, 3);
  CHECK_THROWS_AS(solve_pencils<T>(good.problem(), with(Solver::full, 2), too_small.views()),
                  std::invalid_argument);
  PencilProblem<T> empty;
  Solved<T> nothing(0, 1, 1);
  CHECK_THROWS_AS(solve_pencils<T>(empty, with(Solver::full, 1), nothing.views()),
                  std::invalid_argument);
}
