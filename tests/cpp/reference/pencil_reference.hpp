// Generalized symmetric eigenproblems by textbook methods in long double: a plain Cholesky factor
// of the denominator, forward substitution, and cyclic Jacobi rotations (Golub and Van Loan,
// section 8.5).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference {

// A dense square table of long doubles.
class Table {
 public:
  explicit Table(index_t order) : order_(order), entries_(order * order, 0.0L) {}
  template <class T>
  explicit Table(MatrixView<const T> view) : Table(view.rows) {
    for (index_t i = 0; i < order_; ++i) {
      for (index_t j = 0; j < order_; ++j) (*this)(i, j) = static_cast<long double>(view(i, j));
    }
  }
  index_t order() const { return order_; }
  long double& operator()(index_t i, index_t j) { return entries_[i * order_ + j]; }
  const long double& operator()(index_t i, index_t j) const { return entries_[i * order_ + j]; }

 private:
  index_t order_;
  Vector<long double> entries_;
};

// Eigenvalues in descending order. Column j of `vectors` belongs to eigenvalue j.
struct Eigenpairs {
  explicit Eigenpairs(index_t order) : values(order), vectors(order) {}
  long double value(index_t j) const { return values[j]; }
  Vector<long double> values;
  Table vectors;
};

// Rotates rows and columns p and q of A so that A(p, q) vanishes, and multiplies V by the rotation.
inline void rotate(Table& a, Table& v, index_t p, index_t q) {
  const long double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
  const long double sign = theta >= 0 ? 1.0L : -1.0L;
  const long double tangent = sign / (std::fabs(theta) + std::sqrt(theta * theta + 1));
  const long double cosine = 1 / std::sqrt(tangent * tangent + 1);
  const long double sine = tangent * cosine;
  for (index_t k = 0; k < a.order(); ++k) {
    const long double left = a(k, p);
    const long double right = a(k, q);
    a(k, p) = cosine * left - sine * right;
    a(k, q) = sine * left + cosine * right;
  }
  for (index_t k = 0; k < a.order(); ++k) {
    const long double upper = a(p, k);
    const long double lower = a(q, k);
    a(p, k) = cosine * upper - sine * lower;
    a(q, k) = sine * upper + cosine * lower;
    const long double left = v(k, p);
    const long double right = v(k, q);
    v(k, p) = cosine * left - sine * right;
    v(k, q) = sine * left + cosine * right;
  }
}

// A v = lambda v by cyclic Jacobi sweeps.
inline Eigenpairs symmetric_eigenpairs(Table a) {
  const index_t d = a.order();
  Table v(d);
  long double scale = 0;
  for (index_t i = 0; i < d; ++i) {
    v(i, i) = 1;
    for (index_t j = 0; j < d; ++j) scale += a(i, j) * a(i, j);
  }
  for (int sweep = 0; sweep < 60; ++sweep) {
    long double outside = 0;
    for (index_t p = 0; p < d; ++p) {
      for (index_t q = p + 1; q < d; ++q) outside += a(p, q) * a(p, q);
    }
    if (outside <= 1e-36L * scale) break;
    for (index_t p = 0; p < d; ++p) {
      for (index_t q = p + 1; q < d; ++q) {
        if (std::fabs(a(p, q)) > 0) rotate(a, v, p, q);
      }
    }
  }
  Vector<index_t> order(d);
  std::iota(order.begin(), order.end(), index_t{0});
  std::sort(order.begin(), order.end(), [&](index_t i, index_t j) { return a(i, i) > a(j, j); });
  Eigenpairs result(d);
  for (index_t j = 0; j < d; ++j) {
    const index_t from = order[j];
    result.values[j] = a(from, from);
    for (index_t i = 0; i < d; ++i) result.vectors(i, j) = v(i, from);
  }
  return result;
}

// B = L L^T; B must be positive definite.
inline Table cholesky(const Table& b) {
  const index_t d = b.order();
  Table l(d);
  for (index_t j = 0; j < d; ++j) {
    for (index_t i = j; i < d; ++i) {
      long double sum = b(i, j);
      for (index_t k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
      l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
    }
  }
  return l;
}

// Columns of the result solve L X = A.
inline Table forward_substitution(const Table& l, const Table& a) {
  const index_t d = l.order();
  Table x(d);
  for (index_t column = 0; column < d; ++column) {
    for (index_t i = 0; i < d; ++i) {
      long double sum = a(i, column);
      for (index_t k = 0; k < i; ++k) sum -= l(i, k) * x(k, column);
      x(i, column) = sum / l(i, i);
    }
  }
  return x;
}

inline Table transpose(const Table& a) {
  Table result(a.order());
  for (index_t i = 0; i < a.order(); ++i) {
    for (index_t j = 0; j < a.order(); ++j) result(j, i) = a(i, j);
  }
  return result;
}

// A v = lambda B v, v^T B v = 1: the eigenpairs (lambda, u) of L^-1 A L^-T, and v = L^-T u.
inline Eigenpairs pencil_eigenpairs(const Table& a, const Table& b) {
  const index_t d = a.order();
  const Table l = cholesky(b);
  const Table reduced = forward_substitution(l, transpose(forward_substitution(l, a)));
  Eigenpairs result = symmetric_eigenpairs(reduced);
  for (index_t column = 0; column < d; ++column) {
    for (index_t i = d - 1; i >= 0; --i) {
      long double sum = result.vectors(i, column);
      for (index_t k = i + 1; k < d; ++k) sum -= l(k, i) * result.vectors(k, column);
      result.vectors(i, column) = sum / l(i, i);
    }
  }
  return result;
}

// ||A||_2 of a symmetric table.
inline long double spectral_norm(const Table& a) {
  const Eigenpairs pairs = symmetric_eigenpairs(a);
  return std::max(std::fabs(pairs.values.front()), std::fabs(pairs.values.back()));
}

// A v.
template <class T>
Vector<long double> product(const Table& a, VectorView<const T> v) {
  Vector<long double> result(a.order(), 0.0L);
  for (index_t i = 0; i < a.order(); ++i) {
    for (index_t j = 0; j < a.order(); ++j) {
      result[i] += a(i, j) * static_cast<long double>(v[j]);
    }
  }
  return result;
}

// u^T v.
template <class T>
long double dot(VectorView<const T> u, const Vector<long double>& v) {
  long double sum = 0;
  for (index_t i = 0; i < u.size; ++i) sum += static_cast<long double>(u[i]) * v[i];
  return sum;
}

// ||A v - lambda B v||, given A v and B v.
inline long double residual_norm(const Vector<long double>& av, long double lambda,
                                 const Vector<long double>& bv) {
  long double sum = 0;
  for (index_t i = 0; i < av.size(); ++i)
    sum += (av[i] - lambda * bv[i]) * (av[i] - lambda * bv[i]);
  return std::sqrt(sum);
}

}  // namespace eigenfeat::reference
