#include "kernels/nonzero_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kPanel = 8;

template <class T>
index_t count_entries(const T* x, index_t n) {
  index_t count = 0;
  for (index_t j = 0; j < n; ++j) count += x[j] != T(0);
  return count;
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void add_entries(const T* values, const std::int32_t* columns, index_t count,
                                  const T* panel, T* p) {
  Vec<T> sum[kVectors] = {};
  for (index_t q = 0; q < count; ++q) {
    const T* line = panel + columns[q] * kVectors * kWidth<T>;
    for (index_t v = 0; v < kVectors; ++v) sum[v] += values[q] * load(line + v * kWidth<T>);
  }
  for (index_t v = 0; v < kVectors; ++v) store<T>(sum[v], p + v * kWidth<T>);
}

template <class T>
void sum_entries(index_t vectors, const T* values, const std::int32_t* columns, index_t count,
                 const T* panel, T* p) {
  if (vectors == kPanel) {
    add_entries<T, kPanel>(values, columns, count, panel, p);
  } else {
    add_entries<T, 1>(values, columns, count, panel, p);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(NonzeroKernels<float>) = {
    EIGENFEAT_TIER::kWidth<float>, EIGENFEAT_TIER::kPanel, EIGENFEAT_TIER::count_entries<float>,
    EIGENFEAT_TIER::sum_entries<float>};
EIGENFEAT_DEFINE_FAMILY(NonzeroKernels<double>) = {
    EIGENFEAT_TIER::kWidth<double>, EIGENFEAT_TIER::kPanel, EIGENFEAT_TIER::count_entries<double>,
    EIGENFEAT_TIER::sum_entries<double>};

}  // namespace eigenfeat
