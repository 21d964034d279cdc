#include "logit/softmax.hpp"

#include <cmath>

namespace eigenfeat {

// The loss log(sum exp(z - top)) + top - z_label, exact to an ulp of its terms also where it is
// tiny: then it is log1p of the others' share.
template <class T>
void softmax_residual(T* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms) {
  index_t top = 0;
  for (index_t c = 1; c < k; ++c) {
    if (z[c] > z[top]) top = c;
  }
  const T high = z[top];
  double others = 0.0, squares = 0.0;
  const double gap = static_cast<double>(high) - static_cast<double>(z[label]);
  T sum = T(1);
  constexpr index_t most_kept = 64;  // exponentials, each as dear as some ten products
  T kept[most_kept];
  for (index_t c = 0; c < k; ++c) {
    squares += static_cast<double>(z[c]) * static_cast<double>(z[c]);
    const T part = std::exp(z[c] - high);
    if (c < most_kept) kept[c] = part;
    if (c != top) others += static_cast<double>(part);
  }
  sum += static_cast<T>(others);
  terms.loss += weight * (std::log1p(others) + gap);
  terms.energy += weight * squares;
  const T w = static_cast<T>(weight), share = w / sum;
  const T energy = static_cast<T>(weight * energy_weight);
  for (index_t c = 0; c < k; ++c) {
    const T part = c < most_kept ? kept[c] : std::exp(z[c] - high);
    z[c] = share * part + energy * z[c];
  }
  // What is left of the label's probability, 1 - p, without the cancellation where p is near 1.
  if (label == top) {
    z[label] = energy * high - w * (static_cast<T>(others) / sum);
  } else {
    z[label] -= w;
  }
}

template void softmax_residual<float>(float*, index_t, index_t, double, double, LogitTerms&);
template void softmax_residual<double>(double*, index_t, index_t, double, double, LogitTerms&);

}  // namespace eigenfeat
