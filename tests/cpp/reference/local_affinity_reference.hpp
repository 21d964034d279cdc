// Sums of local scatters by their definition in long double: all pairs, sorted distances.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "eigenfeat/view.hpp"

namespace eigenfeat::reference::affinity {

inline std::size_t at(index_t i) {
  return static_cast<std::size_t>(i);
}

inline long double squared_distance(MatrixView<const double> x, index_t i, index_t j) {
  long double sum = 0;
  for (index_t a = 0; a < x.cols; ++a) {
    const long double gap = static_cast<long double>(x(i, a)) - static_cast<long double>(x(j, a));
    sum += gap * gap;
  }
  return sum;
}

// Of rows [begin, begin + count): each one's k-th smallest distance to the others; 0 for one row.
inline std::vector<long double> scales(MatrixView<const double> x, index_t begin, index_t count,
                                       index_t k) {
  std::vector<long double> sigma(at(count), 0.0L);
  for (index_t i = 0; i < count && count > 1; ++i) {
    std::vector<long double> squares;
    for (index_t j = 0; j < count; ++j) {
      if (j != i) squares.push_back(squared_distance(x, begin + i, begin + j));
    }
    std::sort(squares.begin(), squares.end());
    sigma[at(i)] = std::sqrt(squares[at(std::min(k, count - 1) - 1)]);
  }
  return sigma;
}

struct Sums {
  std::vector<long double> values;  // n_sums (d, d) matrices
  std::vector<long double> errors;  // how far off they may be
};

// The upper triangles of (d, d) matrices from their lower ones.
inline void mirror(std::vector<long double>& matrices, index_t count, index_t d) {
  for (index_t s = 0; s < count; ++s) {
    for (index_t a = 0; a < d; ++a) {
      for (index_t b = 0; b < a; ++b)
        matrices[at((s * d + b) * d + a)] = matrices[at((s * d + a) * d + b)];
    }
  }
}

// By pairs: X^T L X = sum over i < j of A_ij (x_i - x_j) (x_i - x_j)^T. eps: of what is tested.
inline Sums sums(MatrixView<const double> x, const std::vector<index_t>& counts, index_t k,
                 MatrixView<const double> laplacian, MatrixView<const double> plain,
                 long double eps) {
  const index_t d = x.cols;
  Sums out;
  out.values.assign(at(laplacian.rows * d * d), 0.0L);
  out.errors = out.values;
  index_t begin = 0;
  for (index_t c = 0; c < static_cast<index_t>(counts.size()); ++c) {
    const index_t count = counts[at(c)];
    const auto sigma = scales(x, begin, count, k);
    std::vector<long double> norms(at(count), 0.0L);
    for (index_t i = 0; i < count; ++i) {
      for (index_t a = 0; a < d; ++a)
        norms[at(i)] += static_cast<long double>(x(begin + i, a)) * x(begin + i, a);
    }
    const auto add = [&](index_t s, index_t a, index_t b, long double term, long double error) {
      out.values[at((s * d + a) * d + b)] += term;
      out.errors[at((s * d + a) * d + b)] += error;
    };
    for (index_t i = 0; i < count; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        const long double both = sigma[at(i)] * sigma[at(j)];
        const long double square = squared_distance(x, begin + i, begin + j);
        const long double affinity = i != j && both > 0 ? std::exp(-square / both) : 0.0L;
        const long double root = std::sqrt(norms[at(i)]) + std::sqrt(norms[at(j)]);
        // Of the exponent, with what the sigmas add to it, and of sums of as many terms.
        const long double rounding = (static_cast<long double>(d) + 4) * root * root * eps;
        long double off = 0.0L;
        if (affinity > 0) {
          const long double worst = std::min(sigma[at(i)], sigma[at(j)]);
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
