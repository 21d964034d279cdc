#include "kernels/logit_kernels.hpp"

#include <cmath>

#include "expansion/feature_groups.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

// The loss log(sum exp(z - top)) + top - z_label, exact to an ulp of its terms also where it is
// tiny: then it is log1p of the others' share.
template <class T>
void residual(T* z, index_t k, index_t label, double weight, double energy_weight,
              LogitTerms& terms) {
  index_t top = 0;
  for (index_t c = 1; c < k; ++c) {
    if (z[c] > z[top]) top = c;
  }
  const T high = z[top];
  double others = 0.0, squares = 0.0;
  const double gap = static_cast<double>(high) - static_cast<double>(z[label]);
  T sum = T(1);
  for (index_t c = 0; c < k; ++c) {
    squares += static_cast<double>(z[c]) * static_cast<double>(z[c]);
    if (c != top) others += static_cast<double>(std::exp(z[c] - high));
  }
  sum += static_cast<T>(others);
  terms.loss += weight * (std::log1p(others) + gap);
  terms.energy += weight * squares;
  const T w = static_cast<T>(weight), share = w / sum;
  const T energy = static_cast<T>(weight * energy_weight);
  for (index_t c = 0; c < k; ++c) z[c] = share * std::exp(z[c] - high) + energy * z[c];
  // What is left of the label's probability, 1 - p, without the cancellation where p is near 1.
  if (label == top) {
    z[label] = energy * high - w * (static_cast<T>(others) / sum);
  } else {
    z[label] -= w;
  }
}

template <class T>
EIGENFEAT_INLINE void weighted_squares(const T* __restrict x, index_t n, double weight,
                                       double* __restrict sum, double* __restrict square) {
  for (index_t c = 0; c < n; ++c) {
    const double value = static_cast<double>(x[c]), weighted = weight * value;
    sum[c] += weighted;
    square[c] += weighted * value;
  }
}

template <class T>
EIGENFEAT_INLINE void move_into(T* __restrict part, index_t n, double* __restrict sum) {
  for (index_t i = 0; i < n; ++i) {
    sum[i] += static_cast<double>(part[i]);
    part[i] = T(0);
  }
}

}  // namespace

void softmax_residual(float* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms) {
  residual(z, k, label, weight, energy_weight, terms);
}
void softmax_residual(double* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms) {
  residual(z, k, label, weight, energy_weight, terms);
}

EIGENFEAT_CLONES
void add_weighted_squares(const float* x, index_t n, double weight, double* sum, double* square) {
  weighted_squares(x, n, weight, sum, square);
}
EIGENFEAT_CLONES
void add_weighted_squares(const double* x, index_t n, double weight, double* sum, double* square) {
  weighted_squares(x, n, weight, sum, square);
}

EIGENFEAT_CLONES
void flush(float* part, index_t n, double* sum) {
  move_into(part, n, sum);
}
EIGENFEAT_CLONES
void flush(double* part, index_t n, double* sum) {
  move_into(part, n, sum);
}

}  // namespace eigenfeat
