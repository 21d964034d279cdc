// Products with features, the multinomial logit and its metric by plain loops in long double. Each
// value comes with its magnitude, the sum of the absolute values of its terms. The rounding error
// of a sum of n terms is a few eps sqrt(n) times the magnitude.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference::linear {

// A row-major table of long double.
struct Table {
  index_t rows = 0;
  index_t cols = 0;
  Vector<long double> entries;

  Table() = default;
  Table(index_t n, index_t m) : rows(n), cols(m), entries(n * m, 0.0L) {}
  long double& operator()(index_t i, index_t j) { return entries[i * cols + j]; }
  long double operator()(index_t i, index_t j) const { return entries[i * cols + j]; }
};

struct Sum {
  Table value, magnitude;
  Sum(index_t n, index_t m) : value(n, m), magnitude(n, m) {}
  void add(index_t i, index_t j, long double term) {
    value(i, j) += term;
    magnitude(i, j) += std::fabs(term);
  }
};

template <class T>
Table table_of(MatrixView<const T> view) {
  Table out(view.rows, view.cols);
  for (index_t i = 0; i < view.rows; ++i) {
    for (index_t j = 0; j < view.cols; ++j) out(i, j) = static_cast<long double>(view(i, j));
  }
  return out;
}

// Phi W
inline Sum scores(const Table& phi, const Table& w) {
  Sum out(phi.rows, w.cols);
  for (index_t i = 0; i < phi.rows; ++i) {
    for (index_t j = 0; j < phi.cols; ++j) {
      for (index_t c = 0; c < w.cols; ++c) out.add(i, c, phi(i, j) * w(j, c));
    }
  }
  return out;
}

// Phi^T R
inline Sum products(const Table& phi, const Table& r) {
  Sum out(phi.cols, r.cols);
  for (index_t i = 0; i < phi.rows; ++i) {
    for (index_t j = 0; j < phi.cols; ++j) {
      for (index_t c = 0; c < r.cols; ++c) out.add(j, c, phi(i, j) * r(i, c));
    }
  }
  return out;
}

inline long double weight_of(const Vector<double>& weights, index_t i) {
  return weights.empty() ? 1.0L : static_cast<long double>(weights[i]);
}

struct Logit {
  long double loss = 0, energy = 0;
  long double loss_error = 0, energy_error = 0;  // bounds of rounding errors, as gradient_error
  Sum gradient;
  Table gradient_error;
};

// Loss, energy and gradient, and bounds of their rounding errors if logits have errors of
// `logit_eps` times their magnitude and every other operation has a relative error of `eps`.
inline Logit logit(const Table& phi, const Vector<std::int32_t>& labels,
                   const Vector<double>& weights, long double energy_weight, const Table& w,
                   long double logit_eps, long double eps) {
  const Sum z = scores(phi, w);
  const index_t k = w.cols;
  Table residual(phi.rows, k), off(phi.rows, k);
  Logit out{0, 0, 0, 0, Sum(0, 0), Table()};
  for (index_t i = 0; i < phi.rows; ++i) {
    const long double weight = weight_of(weights, i);
    const index_t label = labels[i];
    long double top = z.value(i, 0), error = 0, others = 0;
    for (index_t c = 0; c < k; ++c) {
      top = std::max(top, z.value(i, c));
      error = std::max(error, logit_eps * z.magnitude(i, c));
    }
    for (index_t c = 0; c < k; ++c) others += std::exp(z.value(i, c) - top);
    const long double loss = std::log(others) + top - z.value(i, label);
    out.loss += weight * loss;
    out.loss_error += weight * (2 * error + 8 * eps * (1 + loss));
    for (index_t c = 0; c < k; ++c) {
      const long double value = z.value(i, c), share = std::exp(value - top) / others;
      out.energy += weight * value * value;
      out.energy_error += weight * (2 * std::fabs(value) * error + error * error);
      residual(i, c) = weight * (share - (c == label ? 1 : 0) + energy_weight * value);
      off(i, c) = weight * (std::min(2 * error, 1.0L) + 8 * eps +
                            energy_weight * (error + 4 * eps * std::fabs(value)));
    }
  }
  out.gradient = products(phi, residual);
  Table positive = phi;
  for (long double& entry : positive.entries) entry = std::fabs(entry);
  out.gradient_error = products(positive, off).value;
  return out;
}

// D^-1 (factor D Phi^T diag(w) Phi D + diag) D^-1, dense
inline Table metric(const Table& phi, const Vector<double>& weights, const Vector<double>& scale,
                    const Vector<double>& diagonal, long double factor) {
  Table out(phi.cols, phi.cols);
  for (index_t i = 0; i < phi.rows; ++i) {
    for (index_t a = 0; a < phi.cols; ++a) {
      const long double left = factor * weight_of(weights, i) * phi(i, a);
      for (index_t b = 0; b <= a; ++b) out(a, b) += left * phi(i, b);
    }
  }
  for (index_t a = 0; a < phi.cols; ++a) {
    const index_t at = a;
    out(a, a) += static_cast<long double>(diagonal[at]) / scale[at] / scale[at];
    for (index_t b = 0; b < a; ++b) out(b, a) = out(a, b);
  }
  return out;
}

// Lower Cholesky factor in place; false where a pivot is not positive.
inline bool factorise(Table& a) {
  for (index_t j = 0; j < a.cols; ++j) {
    for (index_t i = j; i < a.rows; ++i) {
      for (index_t l = 0; l < j; ++l) a(i, j) -= a(i, l) * a(j, l);
      if (i == j && !(a(j, j) > 0)) return false;
      a(i, j) = i == j ? std::sqrt(a(j, j)) : a(i, j) / a(j, j);
    }
  }
  return true;
}

// x <- (L L^T)^-1 x
inline void solve(const Table& factor, Table& x) {
  for (index_t c = 0; c < x.cols; ++c) {
    for (index_t i = 0; i < x.rows; ++i) {
      for (index_t l = 0; l < i; ++l) x(i, c) -= factor(i, l) * x(l, c);
      x(i, c) /= factor(i, i);
    }
    for (index_t i = x.rows - 1; i >= 0; --i) {
      for (index_t l = i + 1; l < x.rows; ++l) x(i, c) -= factor(l, i) * x(l, c);
      x(i, c) /= factor(i, i);
    }
  }
}

}  // namespace eigenfeat::reference::linear
