// Private to the eigensolvers: a matrix times a narrow block of vectors, Y = M X.
//
// BLAS packs M in every call, which takes as long as the product for a block of 16 columns. Here M
// (row-major) is read from memory once, and every entry is multiplied by a whole row of X. The rate
// is the memory bandwidth times 2 width / sizeof(T) flops, or the flop rate of the processor if
// that is lower. A triangular M takes half of the flops and traffic; a symmetric M, up to a size,
// half of the traffic.
//
// X and Y: row-major (d, width) on 64-byte boundaries, not overlapping, with width = kLane<T>, 2
// kLane<T> or the narrowest width of the kernels. One task sums each row, in an order that depends
// on d alone: results are bit-for-bit identical for any number of threads.
#pragma once

#include "kernels/line.hpp"
#include "kernels/narrow_kernels.hpp"

namespace eigenfeat {

template <class T>
void multiply_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                     int n_threads);

// Y <- Y + M^T X for a full or upper triangular M (n, columns), zero below its diagonal. X has n
// rows, and Y has a row for each column of M.
template <class T>
void add_transposed_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                           int n_threads);

}  // namespace eigenfeat
