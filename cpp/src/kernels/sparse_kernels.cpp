#include "kernels/sparse_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kAhead = 6;  // entries whose rows of V are prefetched

// kColumns columns of one row of the result, summed in registers.
template <class T, class S, index_t kColumns>
EIGENFEAT_INLINE void row_columns(const CompactRows<T>& x, index_t row, const S* v, index_t stride,
                                  S* out, bool add) {
  S sums[kColumns];
  for (index_t k = 0; k < kColumns; ++k) sums[k] = S(0);
  const index_t end = x.indptr[row + 1];
  for (index_t p = x.indptr[row]; p < end; ++p) {
    const S value = static_cast<S>(x.values[p]);
    const S* line = v + static_cast<index_t>(x.indices[p]) * stride;
    if (p + kAhead < end) {
      const S* next = v + static_cast<index_t>(x.indices[p + kAhead]) * stride;
      for (index_t k = 0; k < kColumns; k += kLane<S>) EIGENFEAT_PREFETCH(next + k);
    }
    for (index_t k = 0; k < kColumns; ++k) sums[k] = product_sum(value, line[k], sums[k]);
  }
  if (add) {
    for (index_t k = 0; k < kColumns; ++k) out[k] += sums[k];
  } else {
    for (index_t k = 0; k < kColumns; ++k) out[k] = sums[k];
  }
}

template <class T, class S>
EIGENFEAT_INLINE void one_row(const CompactRows<T>& x, index_t row, const SparseBlock<S>& b,
                              bool add) {
  S* out = b.out + row * b.out_stride;
  index_t c = 0;
  for (; c + 32 <= b.width; c += 32)
    row_columns<T, S, 32>(x, row, b.v + c, b.v_stride, out + c, add);
  if (c + 16 <= b.width) {
    row_columns<T, S, 16>(x, row, b.v + c, b.v_stride, out + c, add);
    c += 16;
  }
  if (c + 8 <= b.width) {
    row_columns<T, S, 8>(x, row, b.v + c, b.v_stride, out + c, add);
    c += 8;
  }
  if (c + 4 <= b.width) {
    row_columns<T, S, 4>(x, row, b.v + c, b.v_stride, out + c, add);
    c += 4;
  }
  for (; c < b.width; ++c) row_columns<T, S, 1>(x, row, b.v + c, b.v_stride, out + c, add);
}

template <class T, class S>
void multiply_some_rows(const CompactRows<T>& x, index_t begin, index_t end,
                        const SparseBlock<S>& b, bool add) {
  for (index_t row = begin; row < end; ++row) one_row(x, row, b, add);
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(SparseKernels<float, float>) = [] {
  SparseKernels<float, float> table{};
  table.multiply = EIGENFEAT_TIER::multiply_some_rows<float, float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SparseKernels<float, double>) = [] {
  SparseKernels<float, double> table{};
  table.multiply = EIGENFEAT_TIER::multiply_some_rows<float, double>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SparseKernels<double, double>) = [] {
  SparseKernels<double, double> table{};
  table.multiply = EIGENFEAT_TIER::multiply_some_rows<double, double>;
  return table;
}();

}  // namespace eigenfeat
