// Private to the eigensolvers: a matrix times a narrow block of vectors (see pencil/narrow.hpp).
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

enum class Shape { full, symmetric, lower, upper };

// X and Y: row-major (d, width) from 64-byte boundaries on, width = narrowest, twice that, ... up to
// two lines. m: row-major (d, d) with rows `stride` apart.
template <class T>
struct NarrowKernels {
  // numbers in half a line, or in a vector where that is longer
  index_t narrowest;
  // rows [first, last) of Y <- M X; of a triangular M only what may be nonzero is read
  void (*rows)(Shape shape, index_t width, const T* m, index_t stride, index_t d, const T* x,
               index_t first, index_t last, T* y);
  // columns [first, last) of M: rows k of Y += sum over n rows i of M[i][k] X[i]. Of an upper
  // triangular M, zero below, rows are read from the diagonal on
  void (*transposed)(Shape shape, index_t width, const T* m, index_t stride, index_t n, const T* x,
                     index_t first, index_t last, T* y);
  // Y <- M X for a symmetric M, of which the lower triangle is read
  void (*symmetric)(index_t width, const T* m, index_t stride, index_t d, const T* x, T* y);
};
EIGENFEAT_FAMILY(NarrowKernels<float>);
EIGENFEAT_FAMILY(NarrowKernels<double>);

}  // namespace eigenfeat
