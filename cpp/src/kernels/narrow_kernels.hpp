// Private to the eigensolvers: a matrix times a narrow block of vectors (see pencil/narrow.hpp).
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

enum class Shape { full, symmetric, lower, upper };

// X and Y: row-major (d, width), on 64-byte boundaries, with width = narrowest, 2 narrowest, ... up
// to two lines. m: row-major (d, d) with row stride `stride`.
template <class T>
struct NarrowKernels {
  // numbers in half a line, or in a vector if a vector is longer
  index_t narrowest;
  // rows [first, last) of Y <- M X; entries that are zero in a triangular M are not read
  void (*rows)(Shape shape, index_t width, const T* m, index_t stride, index_t d, const T* x,
               index_t first, index_t last, T* y);
  // columns [first, last) of M: rows k of Y += sum over n rows i of M[i][k] X[i]. Rows of an upper
  // triangular M, which is zero below the diagonal, are read from the diagonal on
  void (*transposed)(Shape shape, index_t width, const T* m, index_t stride, index_t n, const T* x,
                     index_t first, index_t last, T* y);
  // Y <- M X for a symmetric M; above the diagonal only a few entries next to it are read
  void (*symmetric)(index_t width, const T* m, index_t stride, index_t d, const T* x, T* y);
};
EIGENFEAT_FAMILY(NarrowKernels<float>);
EIGENFEAT_FAMILY(NarrowKernels<double>);

}  // namespace eigenfeat
