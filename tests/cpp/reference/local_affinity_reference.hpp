// Sums of local scatters by their definition in long double: all pairs, sorted distances.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference::affinity {

inline long double squared_distance(MatrixView<const double> x, index_t i, index_t j) {
  long double sum = 0;
  for (index_t a = 0; a < x.cols; ++a) {
    const long double gap = static_cast<long double>(x(i, a)) - static_cast<long double>(x(j, a));
    sum += gap * gap;
  }
  return sum;
}

// The distance of each of rows [begin, begin + count) to its k-th nearest other row; 0 for one row.
inline Vector<long double> scales(MatrixView<const double> x, index_t begin, index_t count,
                                  index_t k) {
  Vector<long double> sigma(count, 0.0L);
  for (index_t i = 0; i < count && count > 1; ++i) {
    Vector<long double> squares;
    for (index_t j = 0; j < count; ++j) {
      if (j != i) squares.push_back(squared_distance(x, begin + i, begin + j));
    }
    std::sort(squares.begin(), squares.end());
    sigma[i] = std::sqrt(squares[std::min(k, count - 1) - 1]);
  }
  return sigma;
}

struct Sums {
  Vector<long double> values;  // n_sums (d, d) matrices
  Vector<long double> errors;  // bounds of the rounding errors of `values`
};

// Copies the lower triangles of (d, d) matrices to their upper triangles.
inline void mirror(Vector<long double>& matrices, index_t count, index_t d) {
  for (index_t s = 0; s < count; ++s) {
    for (index_t a = 0; a < d; ++a) {
      for (index_t b = 0; b < a; ++b) matrices[(s * d + b) * d + a] = matrices[(s * d + a) * d + b];
    }
  }
}

// X^T L X = sum over i < j of A_ij (x_i - x_j) (x_i - x_j)^T. `eps` is that of the tested type.
inline Sums sums(MatrixView<const double> x, const Vector<index_t>& counts, index_t k,
                 MatrixView<const double> laplacian, MatrixView<const double> plain,
                 long double eps) {
  const index_t d = x.cols;
  Sums out;
  out.values.assign(laplacian.rows * d * d, 0.0L);
  out.errors = out.values;
  index_t begin = 0;
  for (index_t c = 0; c < counts.size(); ++c) {
    const index_t count = counts[c];
    const auto sigma = scales(x, begin, count, k);
    Vector<long double> norms(count, 0.0L);
    for (index_t i = 0; i < count; ++i) {
      for (index_t a = 0; a < d; ++a)
        norms[i] += static_cast<long double>(x(begin + i, a)) * x(begin + i, a);
    }
    const auto add = [&](index_t s, index_t a, index_t b, long double term, long double error) {
      out.values[(s * d + a) * d + b] += term;
      out.errors[(s * d + a) * d + b] += error;
    };
    for (index_t i = 0; i < count; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        const long double both = sigma[i] * sigma[j];
        const long double square = squared_distance(x, begin + i, begin + j);
        const long double affinity = i != j && both > 0 ? std::exp(-square / both) : 0.0L;
        const long double root = std::sqrt(norms[i]) + std::sqrt(norms[j]);
        // Rounding of the exponent, of the sigmas in it, and of sums of that many terms.
        const long double rounding = (static_cast<long double>(d) + 4) * root * root * eps;
        long double off = 0.0L;
        if (affinity > 0) {
          const long double worst = std::min(sigma[i], sigma[j]);
          off = affinity * (rounding / both + square / both * rounding / (worst * worst) + 8 * eps);
        }
        const long double terms = static_cast<long double>(count + 8) * eps;
        for (index_t s = 0; s < laplacian.rows; ++s) {
          const long double weight = laplacian(s, c), own = plain(s, c);
          for (index_t a = 0; a < d; ++a) {
            for (index_t b = 0; b <= a; ++b) {
              const long double ia = x(begin + i, a), ib = x(begin + i, b), ja = x(begin + j, a),
                                jb = x(begin + j, b);
              const long double magnitude =
                  (std::fabs(ia) + std::fabs(ja)) * (std::fabs(ib) + std::fabs(jb));
              add(s, a, b, weight * affinity * (ia - ja) * (ib - jb),
                  std::fabs(weight) * magnitude * (off + terms * affinity));
              if (i == j) add(s, a, b, own * ia * ib, std::fabs(own) * std::fabs(ia * ib) * terms);
            }
          }
        }
      }
    }
    begin += count;
  }
  mirror(out.values, laplacian.rows, d);
  mirror(out.errors, laplacian.rows, d);
  return out;
}

}  // namespace eigenfeat::reference::affinity
