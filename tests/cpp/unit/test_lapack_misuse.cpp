// Views that do not conform, or are not column-major, throw before LAPACK sees them.
#include <doctest/doctest.h>

#include <stdexcept>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using support::Matrix;
using support::Order;

// std::invalid_argument is a std::logic_error as well.

TEST_CASE_TEMPLATE("gemm, syrk and trsm refuse views that do not conform", T, float, double) {
  Matrix<T> square(3, 3, Order::columns), wide(3, 4, Order::columns), rows(3, 4, Order::rows);
  const auto product = [](MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
    gemm<T>(Op::none, Op::none, T(1), a, b, T(0), c);
  };
  CHECK_NOTHROW(product(square.read(), wide.read(), wide.view()));
  CHECK_THROWS_AS(product(wide.read(), square.read(), wide.view()), std::logic_error);
  CHECK_THROWS_AS(product(square.read(), wide.read(), square.view()), std::logic_error);
  CHECK_THROWS_AS(product(square.read(), rows.read(), wide.view()), std::logic_error);
  CHECK_THROWS_AS(product(square.read(), wide.read(), rows.view()), std::logic_error);

  CHECK_NOTHROW(syrk<T>(Triangle::lower, Op::none, T(1), wide.read(), T(0), square.view()));
  CHECK_THROWS_AS(syrk<T>(Triangle::lower, Op::transpose, T(1), wide.read(), T(0), square.view()),
                  std::logic_error);
  CHECK_THROWS_AS(syrk<T>(Triangle::lower, Op::none, T(1), wide.read(), T(0), wide.view()),
                  std::logic_error);
  CHECK_THROWS_AS(syrk<T>(Triangle::lower, Op::none, T(1), rows.read(), T(0), square.view()),
                  std::logic_error);

  for (index_t i = 0; i < 3; ++i) square(i, i) = T(1);
  CHECK_NOTHROW(trsm<T>(Side::left, Triangle::lower, Op::none, T(1), square.read(), wide.view()));
  CHECK_THROWS_AS(trsm<T>(Side::right, Triangle::lower, Op::none, T(1), square.read(), wide.view()),
                  std::logic_error);
  CHECK_THROWS_AS(trsm<T>(Side::left, Triangle::lower, Op::none, T(1), wide.read(), wide.view()),
                  std::logic_error);
  CHECK_THROWS_AS(trsm<T>(Side::left, Triangle::lower, Op::none, T(1), square.read(), rows.view()),
                  std::logic_error);
}

TEST_CASE_TEMPLATE("factorisations and eigensolvers refuse views that do not conform", T, float,
                   double) {
  LapackWork<T> work;
  Vector<T> values(3), short_values(2);
  Matrix<T> square(3, 3, Order::columns), wide(3, 4, Order::columns), rows(3, 3, Order::rows, 1);
  Matrix<T> small(2, 2, Order::columns), vectors(3, 1, Order::columns);
  CHECK_THROWS_AS(potrf<T>(Triangle::lower, wide.view()), std::logic_error);
  CHECK_THROWS_AS(potrf<T>(Triangle::lower, rows.view()), std::logic_error);
  CHECK_THROWS_AS(trtri<T>(Triangle::lower, wide.view()), std::logic_error);
  CHECK_THROWS_AS(trtri<T>(Triangle::lower, rows.view()), std::logic_error);
  CHECK_THROWS_AS(sytrd<T>(Triangle::lower, rows.view(), support::write(values),
                           support::write(values), support::write(values), work),
                  std::logic_error);
  CHECK_THROWS_AS(sytrd<T>(Triangle::lower, square.view(), support::write(short_values),
                           support::write(values), support::write(values), work),
                  std::logic_error);
  CHECK_THROWS_AS(sygst<T>(Triangle::lower, square.view(), small.read()), std::logic_error);
  CHECK_THROWS_AS(sygst<T>(Triangle::lower, rows.view(), square.read()), std::logic_error);
  CHECK_THROWS_AS(
      sygvd<T>(Triangle::lower, square.view(), small.view(), support::write(values), work),
      std::logic_error);
  CHECK_THROWS_AS(
      sygvd<T>(Triangle::lower, square.view(), rows.view(), support::write(values), work),
      std::logic_error);
  CHECK_THROWS_AS(syevd<T>(Triangle::lower, wide.view(), support::write(values), work),
                  std::logic_error);
  CHECK_THROWS_AS(syevd<T>(Triangle::lower, square.view(), support::write(short_values), work),
                  std::logic_error);
  const auto range = [&](index_t first, index_t last) {
    return syevr_range<T>(Triangle::lower, square.view(), first, last, support::write(values),
                          vectors.view(), work);
  };
  CHECK_THROWS_AS(range(0, 1), std::logic_error);  // two vectors do not fit into one column
  CHECK_THROWS_AS(range(3, 3), std::logic_error);
  CHECK_THROWS_AS(range(1, 0), std::logic_error);
  CHECK_THROWS_AS(range(-1, -1), std::logic_error);
  CHECK(range(2, 2) == 0);
}
