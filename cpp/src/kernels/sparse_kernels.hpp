// Private to sparse rows: products of a range of rows and a block of columns.
#pragma once

#include "eigenfeat/sparse_rows.hpp"
#include "kernels/family.hpp"

namespace eigenfeat {

template <class S>
struct SparseBlock {
  const S* v;
  index_t v_stride;
  S* out;
  index_t out_stride;
  index_t width;
};

template <class T, class S>
struct SparseKernels {
  // rows [begin, end) of out <- (or +=, if add) x v
  void (*multiply)(const CompactRows<T>& x, index_t begin, index_t end, const SparseBlock<S>& block,
                   bool add);
};
EIGENFEAT_FAMILY(SparseKernels<float, float>);
EIGENFEAT_FAMILY(SparseKernels<float, double>);
EIGENFEAT_FAMILY(SparseKernels<double, double>);

}  // namespace eigenfeat
