// Private to the core: copies of columns into rows.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct ColumnKernels {
  // out[i][j] = x[j * col_stride + i] for n rows of d columns; out has a pointer for each row. The
  // next `ahead` rows of each column are prefetched.
  void (*scatter_rows)(const T* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                       T* const* out);
};
EIGENFEAT_FAMILY(ColumnKernels<float>);
EIGENFEAT_FAMILY(ColumnKernels<double>);

}  // namespace eigenfeat
