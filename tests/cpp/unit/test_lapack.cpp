// Every LAPACK wrapper against plain loops, with padded leading dimensions, info values and misuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/pencil_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using support::epsilon;
using support::Matrix;
using support::Order;
using support::Random;

namespace {

constexpr index_t kPadding = 3;

template <class T>
long double entry(Op op, const Matrix<T>& a, index_t i, index_t j) {
  return static_cast<long double>(op == Op::none ? a(i, j) : a(j, i));
}

// Entries of a triangular matrix outside its triangle are NaN, as no function may read them.
template <class T>
Matrix<T> triangular(Random& random, index_t n, Triangle triangle) {
  Matrix<T> a(n, n, Order::columns, kPadding);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) {
      const bool inside = triangle == Triangle::lower ? j <= i : i <= j;
      a(i, j) = inside ? static_cast<T>(i == j ? 2 + random.uniform() : 0.3 * random.normal())
                       : std::numeric_limits<T>::quiet_NaN();
    }
  }
  return a;
}

template <class T>
long double triangular_entry(Triangle triangle, const Matrix<T>& a, index_t i, index_t j) {
  const bool inside = triangle == Triangle::lower ? j <= i : i <= j;
  return inside ? static_cast<long double>(a(i, j)) : 0.0L;
}

template <class T>
Matrix<T> one_triangle(const Matrix<T>& symmetric, Triangle triangle) {
  Matrix<T> a(symmetric.rows(), symmetric.cols(), Order::columns, kPadding);
  for (index_t i = 0; i < a.rows(); ++i) {
    for (index_t j = 0; j < a.cols(); ++j) {
      const bool inside = triangle == Triangle::lower ? j <= i : i <= j;
      a(i, j) = inside ? symmetric(i, j) : std::numeric_limits<T>::quiet_NaN();
    }
  }
  return a;
}

// Checks eigenpairs first .. first + count of A v = lambda B v, in ascending order.
template <class T>
void check_eigenpairs(const Matrix<T>& a, const Matrix<T>& b, const Vector<T>& values,
                      const Matrix<T>& vectors, index_t first, index_t count) {
  const index_t n = a.rows();
  const reference::Table table_a(a.read()), table_b(b.read());
  const reference::Eigenpairs expected = reference::pencil_eigenpairs(table_a, table_b);
  const long double size =
      std::max(std::fabs(expected.values.front()), std::fabs(expected.values.back()));
  const long double tolerance = 40.0L * static_cast<long double>(n) * epsilon<T>();
  for (index_t j = 0; j < count; ++j) {
    CHECK(std::fabs(static_cast<long double>(values[j]) - expected.value(n - 1 - first - j)) <=
          tolerance * size);
    const VectorView<const T> v{vectors.read().col(j), n};
    const auto av = reference::product(table_a, v), bv = reference::product(table_b, v);
    CHECK(reference::residual_norm(av, static_cast<long double>(values[j]), bv) <=
          tolerance * size);
    for (index_t k = 0; k <= j; ++k) {
      const VectorView<const T> u{vectors.read().col(k), n};
      CHECK(std::fabs(reference::dot(u, bv) - (j == k ? 1 : 0)) <= tolerance);
    }
  }
}

template <class T>
Matrix<T> identity(index_t n) {
  Matrix<T> result(n, n);
  for (index_t i = 0; i < n; ++i) result(i, i) = T(1);
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("gemm is the plain triple loop", T, float, double) {
  Random random(1);
  const index_t m = 4, n = 3, k = 5;
  const T alpha = T(1.5), beta = T(-0.5);
  for (const Op op_a : {Op::none, Op::transpose}) {
    for (const Op op_b : {Op::none, Op::transpose}) {
      const Matrix<T> a = op_a == Op::none
                              ? random.normal_matrix<T>(m, k, Order::columns, kPadding)
                              : random.normal_matrix<T>(k, m, Order::columns, kPadding);
      const Matrix<T> b = op_b == Op::none
                              ? random.normal_matrix<T>(k, n, Order::columns, kPadding)
                              : random.normal_matrix<T>(n, k, Order::columns, kPadding);
      Matrix<T> c = random.normal_matrix<T>(m, n, Order::columns, kPadding);
      const Matrix<T> before = c;
      gemm<T>(op_a, op_b, alpha, a.read(), b.read(), beta, c.view());
      for (index_t i = 0; i < m; ++i) {
        for (index_t j = 0; j < n; ++j) {
          long double sum = 0, size = std::fabs(static_cast<long double>(before(i, j)));
          for (index_t l = 0; l < k; ++l) {
            sum += entry(op_a, a, i, l) * entry(op_b, b, l, j);
            size += std::fabs(entry(op_a, a, i, l) * entry(op_b, b, l, j));
          }
          const long double expected =
              static_cast<long double>(alpha) * sum +
              static_cast<long double>(beta) * static_cast<long double>(before(i, j));
          CHECK(std::fabs(static_cast<long double>(c(i, j)) - expected) <=
                10 * epsilon<T>() * size);
        }
      }
      CHECK(c.padding_untouched());
    }
  }
}

TEST_CASE_TEMPLATE("gemm with beta = 0 does not read C, and with no columns does nothing", T, float,
                   double) {
  const Matrix<T> a(2, 2, {1, 2, 3, 4}, Order::columns);
  Matrix<T> c(2, 2, Order::columns);
  c(0, 0) = c(1, 1) = std::numeric_limits<T>::quiet_NaN();
  gemm<T>(Op::none, Op::none, T(1), a.read(), a.read(), T(0), c.view());
  CHECK(c(0, 0) == T(7));
  CHECK(c(1, 1) == T(22));
  gemm<T>(Op::none, Op::none, T(1), a.read(), a.read().block(0, 0, 2, 0), T(0),
          c.view().block(0, 0, 2, 0));
  CHECK(c(0, 1) == T(10));
}

TEST_CASE_TEMPLATE("syrk writes one triangle only", T, float, double) {
  Random random(2);
  const index_t n = 4, k = 6;
  for (const Op op : {Op::none, Op::transpose}) {
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      const Matrix<T> a = op == Op::none ? random.normal_matrix<T>(n, k, Order::columns, kPadding)
                                         : random.normal_matrix<T>(k, n, Order::columns, kPadding);
      Matrix<T> c = random.normal_matrix<T>(n, n, Order::columns, kPadding);
      const Matrix<T> before = c;
      syrk<T>(triangle, op, T(2), a.read(), T(3), c.view());
      for (index_t i = 0; i < n; ++i) {
        for (index_t j = 0; j < n; ++j) {
          if (triangle == Triangle::lower ? j > i : i > j) {
            CHECK(c(i, j) == before(i, j));
            continue;
          }
          long double sum = 0, size = 3 * std::fabs(static_cast<long double>(before(i, j)));
          for (index_t l = 0; l < k; ++l) {
            sum += 2 * entry(op, a, i, l) * entry(op, a, j, l);
            size += 2 * std::fabs(entry(op, a, i, l) * entry(op, a, j, l));
          }
          const long double expected = sum + 3 * static_cast<long double>(before(i, j));
          CHECK(std::fabs(static_cast<long double>(c(i, j)) - expected) <=
                10 * epsilon<T>() * size);
        }
      }
      CHECK(c.padding_untouched());
    }
  }
}

TEST_CASE_TEMPLATE("trsm solves on either side, with either triangle and either op", T, float,
                   double) {
  Random random(3);
  const index_t m = 5, n = 3;
  for (const Side side : {Side::left, Side::right}) {
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      for (const Op op : {Op::none, Op::transpose}) {
        const index_t order = side == Side::left ? m : n;
        const Matrix<T> a = triangular<T>(random, order, triangle);
        const Matrix<T> right = random.normal_matrix<T>(m, n, Order::columns, kPadding);
        Matrix<T> x = right;
        trsm<T>(side, triangle, op, T(2), a.read(), x.view());
        const auto op_entry = [&](index_t i, index_t j) {
          return op == Op::none ? triangular_entry(triangle, a, i, j)
                                : triangular_entry(triangle, a, j, i);
        };
        for (index_t i = 0; i < m; ++i) {
          for (index_t j = 0; j < n; ++j) {
            long double sum = 0;
            for (index_t l = 0; l < order; ++l) {
              sum += side == Side::left ? op_entry(i, l) * static_cast<long double>(x(l, j))
                                        : static_cast<long double>(x(i, l)) * op_entry(l, j);
            }
            CHECK(std::fabs(sum - 2 * static_cast<long double>(right(i, j))) <= 100 * epsilon<T>());
          }
        }
        CHECK(x.padding_untouched());
      }
    }
  }
}

TEST_CASE_TEMPLATE("potrf of a matrix with a known factor", T, float, double) {
  // [4 2; 2 5] = [2 0; 1 2] [2 1; 0 2]
  Matrix<T> a(2, 2, {4, -9, 2, 5}, Order::columns);
  CHECK(potrf<T>(Triangle::lower, a.view()) == 0);
  CHECK(a(0, 0) == T(2));
  CHECK(a(1, 0) == T(1));
  CHECK(a(1, 1) == T(2));
  CHECK(a(0, 1) == T(-9));  // the other triangle stays
  Matrix<T> u(2, 2, {4, 2, -9, 5}, Order::columns);
  CHECK(potrf<T>(Triangle::upper, u.view()) == 0);
  CHECK(u(0, 1) == T(1));
  CHECK(u(1, 1) == T(2));
}

TEST_CASE_TEMPLATE("potrf returns the order of the leading minor that is not positive", T, float,
                   double) {
  Matrix<T> first(2, 2, {-1, 0, 0, 1}, Order::columns);
  CHECK(potrf<T>(Triangle::lower, first.view()) == 1);
  Matrix<T> second(3, 3, {1, 0, 0, 2, 1, 0, 0, 0, 1},
                   Order::columns);  // [1 2; 2 1] has determinant -3
  CHECK(potrf<T>(Triangle::lower, second.view()) == 2);
  Matrix<T> third(3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 0}, Order::columns);
  CHECK(potrf<T>(Triangle::lower, third.view()) == 3);
}

TEST_CASE_TEMPLATE("trtri inverts, or returns the index of a zero on the diagonal", T, float,
                   double) {
  Random random(4);
  for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
    const index_t n = 5;
    const Matrix<T> a = triangular<T>(random, n, triangle);
    Matrix<T> inverse = a;
    CHECK(trtri<T>(triangle, inverse.view()) == 0);
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        long double sum = 0;
        for (index_t l = 0; l < n; ++l) {
          sum += triangular_entry(triangle, a, i, l) * triangular_entry(triangle, inverse, l, j);
        }
        CHECK(std::fabs(sum - (i == j ? 1 : 0)) <= 50 * epsilon<T>());
      }
    }
  }
  Matrix<T> singular(3, 3, {1, 0, 0, 2, 0, 0, 3, 4, 5}, Order::columns);
  CHECK(trtri<T>(Triangle::lower, singular.view()) == 2);
}

TEST_CASE_TEMPLATE("sygst reduces by the Cholesky factor", T, float, double) {
  // L = [2 0; 1 2]; L (C) L^T with C = [1 3; 3 2] is [4 14; 14 21]
  Matrix<T> a(2, 2, {4, -9, 14, 21}, Order::columns);
  const Matrix<T> factor(2, 2, {2, -9, 1, 2}, Order::columns);
  CHECK(sygst<T>(Triangle::lower, a.view(), factor.read()) == 0);
  CHECK(a(0, 0) == T(1));
  CHECK(a(1, 0) == T(3));
  CHECK(a(1, 1) == T(2));
}

TEST_CASE_TEMPLATE("sygvd, syevd and syevr_range agree with Jacobi", T, float, double) {
  Random random(5);
  for (const index_t n : {index_t{1}, index_t{2}, index_t{12}}) {
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      LapackWork<T> work;
      const Matrix<T> a = random.symmetric<T>(n, Order::columns);
      const Matrix<T> b = random.positive_definite<T>(n, 1.0, Order::columns);
      Vector<T> values(n);
      {
        Matrix<T> vectors = one_triangle(a, triangle);
        Matrix<T> factor = one_triangle(b, triangle);
        REQUIRE(sygvd<T>(triangle, vectors.view(), factor.view(), support::write(values), work) ==
                0);
        check_eigenpairs(a, b, values, vectors, 0, n);
        const reference::Table expected = reference::cholesky(reference::Table(b.read()));
        const T corner = triangle == Triangle::lower ? factor(n - 1, 0) : factor(0, n - 1);
        CHECK(std::fabs(static_cast<long double>(corner) - expected(n - 1, 0)) <=
              100 * epsilon<T>());
      }
      {
        Matrix<T> vectors = one_triangle(a, triangle);
        REQUIRE(syevd<T>(triangle, vectors.view(), support::write(values), work) == 0);
        check_eigenpairs(a, identity<T>(n), values, vectors, 0, n);
      }
      const index_t first = n / 3, last = n - 1 - n / 4;
      Matrix<T> destroyed = one_triangle(a, triangle);
      Matrix<T> vectors(n, last - first + 1, Order::columns, kPadding);
      REQUIRE(syevr_range<T>(triangle, destroyed.view(), first, last, support::write(values),
                             vectors.view(), work) == 0);
      check_eigenpairs(a, identity<T>(n), values, vectors, first, last - first + 1);
      CHECK(vectors.padding_untouched());
    }
  }
}

TEST_CASE_TEMPLATE("sytrd gives a tridiagonal matrix and its reflectors", T, float, double) {
  Random random(6);
  for (const index_t n : {1, 2, 3, 40}) {
    LapackWork<T> work;
    const Matrix<T> a = random.symmetric<T>(n, Order::columns);
    Matrix<T> reduced = one_triangle(a, Triangle::lower);
    Vector<T> diagonal(n), off(n), tau(n);
    REQUIRE(sytrd<T>(Triangle::lower, reduced.view(), support::write(diagonal), support::write(off),
                     support::write(tau), work) == 0);
    // Q = H(1) ... H(n - 1), applied to T = Q^T A Q from both sides.
    reference::Table back(n);
    for (index_t i = 0; i < n; ++i) {
      back(i, i) = static_cast<long double>(diagonal[i]);
      if (i + 1 < n) back(i, i + 1) = back(i + 1, i) = static_cast<long double>(off[i]);
    }
    for (index_t h = n - 2; h >= 0; --h) {
      Vector<long double> v(n, 0.0L);
      v[h + 1] = 1;
      for (index_t i = h + 2; i < n; ++i) v[i] = static_cast<long double>(reduced(i, h));
      const long double factor = static_cast<long double>(tau[h]);
      for (const bool left : {true, false}) {
        for (index_t j = 0; j < n; ++j) {
          long double dot = 0;
          for (index_t i = 0; i < n; ++i) dot += v[i] * (left ? back(i, j) : back(j, i));
          for (index_t i = 0; i < n; ++i) (left ? back(i, j) : back(j, i)) -= factor * dot * v[i];
        }
      }
    }
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j)
        CHECK(std::fabs(back(i, j) - static_cast<long double>(a(i, j))) <= 200 * epsilon<T>());
    }
  }
}

TEST_CASE_TEMPLATE("sygvd returns the order of the leading minor of B that is not positive", T,
                   float, double) {
  LapackWork<T> work;
  Vector<T> values(3);
  Matrix<T> a(3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1}, Order::columns);
  Matrix<T> b(3, 3, {1, 2, 0, 2, 1, 0, 0, 0, 1}, Order::columns);
  CHECK(sygvd<T>(Triangle::lower, a.view(), b.view(), support::write(values), work) == 3 + 2);
}

TEST_CASE_TEMPLATE("large decompositions, also of matrices that LAPACK scales", T, float, double) {
  const index_t n = 260;
  Random random(10);
  Matrix<T> symmetric = random.positive_definite<T>(n, T(0.5));
  const T tiny = std::numeric_limits<T>::min() * 1000;
  for (const T scale : {T(1), tiny}) {
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      Matrix<T> a = one_triangle(symmetric, triangle);
      for (index_t i = 0; i < n; ++i) {
        for (index_t j = 0; j < n; ++j) a(i, j) *= scale;
      }
      Vector<T> values(n);
      LapackWork<T> work;
      REQUIRE(syevd<T>(triangle, a.view(), support::write(values), work) == 0);
      double worst = 0, largest = 0;
      for (index_t c = 0; c < n; c += 37) {
        const double value = static_cast<double>(values[c] / scale);
        for (index_t i = 0; i < n; ++i) {
          double residual = -value * static_cast<double>(a(i, c)), length = 0;
          for (index_t j = 0; j < n; ++j) {
            residual += static_cast<double>(symmetric(i, j)) * static_cast<double>(a(j, c));
            length += static_cast<double>(a(j, c)) * static_cast<double>(a(j, c));
          }
          worst = std::max({worst, std::abs(residual), std::abs(length - 1)});
          largest = std::max(largest, std::abs(static_cast<double>(symmetric(i, i))));
        }
      }
      CHECK(worst <= static_cast<double>(n) * static_cast<double>(epsilon<T>()) * (1 + largest));
    }
  }
}
