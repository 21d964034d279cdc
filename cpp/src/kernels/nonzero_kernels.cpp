#include "kernels/nonzero_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kPanel = 8;  // vectors of a full panel's row

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

EIGENFEAT_DEFINE_FAMILY(NonzeroKernels<float>) = [] {
  NonzeroKernels<float> table{};
  table.unit = EIGENFEAT_TIER::kWidth<float>;
  table.panel = EIGENFEAT_TIER::kPanel;
  table.count = EIGENFEAT_TIER::count_entries<float>;
  table.sum = EIGENFEAT_TIER::sum_entries<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(NonzeroKernels<double>) = [] {
  NonzeroKernels<double> table{};
  table.unit = EIGENFEAT_TIER::kWidth<double>;
  table.panel = EIGENFEAT_TIER::kPanel;
  table.count = EIGENFEAT_TIER::count_entries<double>;
  table.sum = EIGENFEAT_TIER::sum_entries<double>;
  return table;
}();

}  // namespace eigenfeat
