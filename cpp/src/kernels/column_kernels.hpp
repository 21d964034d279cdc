// Private to moments: columns become rows.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// out[i][j] = x[j * col_stride + i] for n rows of d columns; out: where each row goes. Columns that
// follow further down are prefetched for as many rows as are `ahead`.
void scatter_rows(const float* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                  float* const* out);
void scatter_rows(const double* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                  double* const* out);

}  // namespace eigenfeat
