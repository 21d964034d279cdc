// The expansion against plain formulas, for every wave, set of powers, layout and thread count.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/expansion_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

using Powers = Vector<int>;

// The feature of projection p for sign s and power a.
long double wave_of(Wave wave, long double p, int sign, int power) {
  const long double z = static_cast<long double>(sign) * p;
  return wave == Wave::half_wave ? reference::half_wave(z, power)
                                 : reference::shifted_wave(z, power);
}

// A feature is right if it lies between the features of both ends of the projection's rounding
// interval: psi is monotone in s p, and its slope near 0 has no bound.
template <class T>
bool feature_agrees(long double got, long double low, long double high) {
  const long double slack = 8 * epsilon<T>();
  if (low > high) std::swap(low, high);
  return got >= low - slack * (std::fabs(low) + std::min(1.0L, std::fabs(high))) &&
         got <= high + slack * (std::fabs(high) + std::min(1.0L, std::fabs(high))) + slack * slack;
}

template <class T>
index_t count_wrong(MatrixView<const T> rows, MatrixView<const T> directions,
                    VectorView<const T> offset, const Expansion& expansion,
                    MatrixView<const T> out) {
  index_t wrong = 0, column = 0;
  if (expansion.include_input) {
    for (; column < rows.cols; ++column) {
      for (index_t i = 0; i < rows.rows; ++i) wrong += out(i, column) == rows(i, column) ? 0 : 1;
    }
  }
  const long double terms = static_cast<long double>(rows.cols + 2);
  const auto check_columns = [&](int sign, int power) {
    for (index_t f = 0; f < directions.cols; ++f, ++column) {
      for (index_t i = 0; i < rows.rows; ++i) {
        const long double p = reference::projection(rows, directions, offset, i, f);
        const long double error =
            terms * epsilon<T>() * reference::projection_magnitude(rows, directions, offset, i, f);
        const long double got = static_cast<long double>(out(i, column));
        if (expansion.wave == Wave::none) {
          wrong += std::fabs(got - p) <= error ? 0 : 1;
        } else {
          wrong += feature_agrees<T>(got, wave_of(expansion.wave, p - error, sign, power),
                                     wave_of(expansion.wave, p + error, sign, power))
                       ? 0
                       : 1;
        }
      }
    }
  };
  if (expansion.wave == Wave::none) {
    check_columns(1, 2);
  } else {
    for (const int sign : {1, -1}) {
      for (const int power : expansion.powers) check_columns(sign, power);
    }
  }
  return wrong + (column == out.cols ? 0 : 1000000);  // more than the number of entries
}

Vector<Expansion> all_expansions() {
  Vector<Expansion> result;
  for (const bool include_input : {false, true}) {
    result.push_back({Wave::none, {}, include_input});
    for (const Wave wave : {Wave::half_wave, Wave::shifted}) {
      for (const Powers& powers : {Powers{1, 2, 3}, Powers{1}, Powers{2}, Powers{3}, Powers{3, 1},
                                   Powers{1, 2}, Powers{3, 2, 1}}) {
        result.push_back({wave, powers, include_input});
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("one row, two directions, by hand", T, float, double) {
  // x = (3, 1), v1 = (1, 1): p = 4; v2 = (-3, 0): p = -9.
  const Matrix<T> rows(1, 2, {3, 1}), directions(2, 2, {1, -3, 1, 0});
  Expansion expansion;
  expansion.include_input = true;
  REQUIRE(expanded_columns(expansion, 2, 2) == 14);
  Matrix<T> out(1, 14);
  expand<T>(rows.read(), directions.read(), {}, expansion, out.view(), 1);
  const double expected[] = {3, 1, 2, 0, 4, 0, 8, 0, 0, 3, 0, 9, 0, 27};
  for (index_t j = 0; j < 14; ++j)
    CHECK(static_cast<double>(out(0, j)) == doctest::Approx(expected[j]));

  // shifted: sqrt(1 + 8) - 1 = 2 for p = 8 and sqrt(1 + 15) - 1 = 3 for p = -15
  const Vector<T> offset{T(4), T(-6)};
  Matrix<T> shifted(1, 12);
  expand<T>(rows.read(), directions.read(), read(offset), {Wave::shifted, {1, 2, 3}, false},
            shifted.view(), 1);
  const double expected_shifted[] = {2, 0, 4, 0, 8, 0, 0, 3, 0, 9, 0, 27};
  for (index_t j = 0; j < 12; ++j) {
    CHECK(static_cast<double>(shifted(0, j)) == doctest::Approx(expected_shifted[j]));
  }
}

TEST_CASE("the number of columns") {
  CHECK(expanded_columns({Wave::none, {1, 2, 3}, false}, 5, 4) == 4);
  CHECK(expanded_columns({Wave::none, {}, true}, 5, 4) == 9);
  CHECK(expanded_columns({Wave::half_wave, {2}, false}, 5, 4) == 8);
  CHECK(expanded_columns({Wave::shifted, {1, 3}, true}, 5, 4) == 21);
  CHECK(expanded_columns({Wave::half_wave, {1, 2, 3}, true}, 5, 0) == 5);
}

TEST_CASE_TEMPLATE("every wave, power and kind of input agrees with the formulas", T, float,
                   double) {
  Random random(61);
  const Matrix<T> directions = random.normal_matrix<T>(6, 5, Order::rows, 1);
  const Matrix<T> offset_row = random.normal_matrix<T>(1, 5);
  const Vector<T> offset(offset_row.read().row(0), offset_row.read().row(0) + 5);
  for (const index_t n : {index_t{1}, index_t{40}}) {
    const Matrix<T> rows = random.normal_matrix<T>(n, 6, Order::rows, 2);
    for (const Expansion& expansion : all_expansions()) {
      for (const VectorView<const T> shift : {VectorView<const T>{}, read(offset)}) {
        Matrix<T> out(n, expanded_columns(expansion, 6, 5), Order::rows, 3);
        expand<T>(rows.read(), directions.read(), shift, expansion, out.view(), 2);
        CHECK(count_wrong<T>(rows.read(), directions.read(), shift, expansion, out.read()) == 0);
        CHECK(out.padding_untouched());
      }
    }
  }
}

TEST_CASE_TEMPLATE("many rows, beyond one tile, agree with the formulas", T, float, double) {
  Random random(62);
  const Matrix<T> directions = random.normal_matrix<T>(4, 3);
  for (const index_t n : {index_t{127}, index_t{129}, index_t{513}, index_t{4097}}) {
    const Matrix<T> rows = random.normal_matrix<T>(n, 4);
    const Expansion expansion{Wave::half_wave, {1, 2, 3}, true};
    Matrix<T> out(n, expanded_columns(expansion, 4, 3));
    expand<T>(rows.read(), directions.read(), {}, expansion, out.view(), 2);
    CHECK(count_wrong<T>(rows.read(), directions.read(), {}, expansion, out.read()) == 0);
  }
}

TEST_CASE_TEMPLATE("sparse rows agree with the formulas", T, float, double) {
  Random random(63);
  const Matrix<T> directions = random.normal_matrix<T>(20, 4);
  const Vector<T> offset{T(0.5), T(-1), T(0), T(2)};
  for (const double density : {0.0, 0.1, 1.0}) {
    SparseRows<T> rows = random_sparse<T>(random, 60, 20, density);
    rows.add(7, 1);  // one more row, with a duplicate
    rows.add(2, 3);
    rows.add(7, 2);
    rows.end_row();
    const Matrix<T> dense = rows.dense();
    for (const Expansion& expansion : all_expansions()) {
      Matrix<T> out(61, expanded_columns(expansion, 20, 4));
      expand<T>(rows.view(), directions.read(), read(offset), expansion, out.view(), 2);
      CHECK(count_wrong<T>(dense.read(), directions.read(), read(offset), expansion, out.read()) ==
            0);
    }
  }
}

TEST_CASE_TEMPLATE("1, 2 and 7 threads give the same bits", T, float, double) {
  Random random(64);
  const Matrix<T> rows = random.normal_matrix<T>(1500, 30),
                  directions = random.normal_matrix<T>(30, 11);
  const SparseRows<T> sparse = random_sparse<T>(random, 1500, 30, 0.2);
  for (const Wave wave : {Wave::none, Wave::half_wave, Wave::shifted}) {
    const Expansion expansion{wave, {1, 2, 3}, true};
    const index_t width = expanded_columns(expansion, 30, 11);
    Vector<T> dense_one, sparse_one;
    for (const int n_threads : {1, 2, 7}) {
      Vector<T> dense_out(1500 * width), sparse_out(1500 * width);
      expand<T>(rows.read(), directions.read(), {}, expansion,
                row_major(dense_out.data(), 1500, width), n_threads);
      expand<T>(sparse.view(), directions.read(), {}, expansion,
                row_major(sparse_out.data(), 1500, width), n_threads);
      if (n_threads == 1) {
        dense_one = dense_out;
        sparse_one = sparse_out;
      }
      CHECK(same_bits(dense_out, dense_one));
      CHECK(same_bits(sparse_out, sparse_one));
    }
  }
}

TEST_CASE_TEMPLATE("no rows and no directions give empty features", T, float, double) {
  const Matrix<T> rows(2, 3, {1, 2, 3, 4, 5, 6}), directions(3, 2);
  Matrix<T> nothing(0, 12), input(2, 3);
  CHECK_NOTHROW(
      expand<T>(rows.read().block(0, 0, 0, 3), directions.read(), {}, {}, nothing.view(), 2));
  expand<T>(rows.read(), directions.read().block(0, 0, 3, 0), {}, {Wave::half_wave, {1}, true},
            input.view(), 2);
  CHECK(input(1, 2) == T(6));
}

TEST_CASE_TEMPLATE("a zero projection gives zeros of both signs", T, float, double) {
  const Matrix<T> rows(1, 1, {0}), directions(1, 1, {1});
  for (const Wave wave : {Wave::half_wave, Wave::shifted}) {
    Matrix<T> out(1, 6);
    expand<T>(rows.read(), directions.read(), {}, {wave, {1, 2, 3}, false}, out.view(), 1);
    for (index_t j = 0; j < 6; ++j) CHECK(out(0, j) == T(0));
  }
}

TEST_CASE_TEMPLATE("a message names the argument that does not conform", T, float, double) {
  Random random(65);
  const Matrix<T> rows = random.normal_matrix<T>(4, 3), directions = random.normal_matrix<T>(3, 2);
  const Matrix<T> wrong_directions = random.normal_matrix<T>(4, 2);
  const SparseRows<T> sparse = random_sparse<T>(random, 4, 3, 1.0);
  const Vector<T> wrong_offset(3);
  Matrix<T> out(4, 12), wrong_out(4, 11), short_out(3, 12), column_out(4, 12, Order::columns);
  const auto message = [&](const Matrix<T>& v, VectorView<const T> offset, const Powers& powers,
                           Matrix<T>& to) {
    const Expansion expansion{Wave::half_wave, powers, false};
    const auto dense_message = message_of<std::invalid_argument>(
        [&] { expand<T>(rows.read(), v.read(), offset, expansion, to.view(), 1); });
    const auto sparse_message = message_of<std::invalid_argument>(
        [&] { expand<T>(sparse.view(), v.read(), offset, expansion, to.view(), 1); });
    CHECK(dense_message == sparse_message);
    return dense_message;
  };
  const Powers powers{1, 2, 3};
  CHECK(message(directions, {}, powers, out) == "");
  CHECK(starts_with(message(wrong_directions, {}, powers, out), "directions:"));
  CHECK(starts_with(message(directions, read(wrong_offset), powers, out), "offset:"));
  CHECK(starts_with(message(directions, {}, powers, wrong_out), "out:"));
  CHECK(starts_with(message(directions, {}, powers, short_out), "out:"));
  CHECK(starts_with(message(directions, {}, powers, column_out), "out:"));
  CHECK(starts_with(message(directions, {}, {0}, out), "powers:"));
  CHECK(starts_with(message(directions, {}, {4}, out), "powers:"));
  CHECK(starts_with(message(directions, {}, {2, 2}, out), "powers:"));
  CHECK(starts_with(message(directions, {}, {}, out), "powers:"));
}

TEST_CASE_TEMPLATE("wrong layouts and sparse columns are refused", T, float, double) {
  Random random(66);
  const Matrix<T> directions = random.normal_matrix<T>(3, 2);
  const Matrix<T> columns = random.normal_matrix<T>(4, 3, Order::columns);
  const Matrix<T> column_directions = random.normal_matrix<T>(3, 2, Order::columns);
  Matrix<T> out(4, 12);
  CHECK_THROWS_AS(expand<T>(columns.read(), directions.read(), {}, {}, out.view(), 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(expand<T>(columns.read().block(0, 0, 1, 3), directions.read(), {}, {},
                            out.view().block(0, 0, 1, 12), 1),
                  std::invalid_argument);
  const SparseRows<T> good = random_sparse<T>(random, 4, 3, 1.0);
  CHECK_THROWS_AS(expand<T>(good.view(), column_directions.read(), {}, {}, out.view(), 1),
                  std::invalid_argument);
  for (const index_t column : {index_t{-1}, index_t{3}}) {
    SparseRows<T> bad = good;
    bad.indices[2] = column;
    CHECK_THROWS_AS(expand<T>(bad.view(), directions.read(), {}, {}, out.view(), 1),
                    std::invalid_argument);
  }
}
