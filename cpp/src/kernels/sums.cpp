#include "kernels/sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/line.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {

EIGENFEAT_CLONES
double dot(const double* a, const double* b, index_t n) {
  constexpr index_t kLanes = 8;
  double sums[kLanes] = {};
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (index_t k = 0; k < kLanes; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (index_t k = 0; i < n; ++i, ++k) sums[k] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

EIGENFEAT_CLONES
double largest_magnitude(const double* x, index_t n) {
  using V = Line<double>::type;
  constexpr index_t kLanes = kLane<double>;
  V most{}, entries;
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    std::memcpy(&entries, x + i, sizeof entries);
    const V magnitudes = entries < 0.0 ? -entries : entries;
    most = magnitudes > most ? magnitudes : most;
  }
  double result = 0.0;
  for (index_t k = 0; k < kLanes; ++k) result = std::max(result, most[k]);
  for (; i < n; ++i) result = std::max(result, std::fabs(x[i]));
  return result;
}

}  // namespace eigenfeat
