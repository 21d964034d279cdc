// Private to the eigensolvers: a matrix times a narrow block of vectors, Y = M X.
//
// BLAS packs M for every call, which costs as much as a block of 16 columns has to compute. Here M
// (row-major) streams from memory once and every entry meets the whole row of X, so that the rate
// is the bandwidth times 2 width / sizeof(T) flops until the machine's flop rate bounds it.
// Triangular M: half of both; symmetric M: half of the bandwidth, up to a size.
//
// X and Y: row-major (d, width) from 64-byte boundaries on, width = kLane<T>, 2 kLane<T> or the
// kernels' narrowest, not overlapping. Each row is summed by one task in an order that depends on d alone: the same bits
// for every thread count.
#pragma once

#include "kernels/line.hpp"
#include "kernels/narrow_kernels.hpp"

namespace eigenfeat {

template <class T>
void multiply_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                     int n_threads);

// Y <- Y + M^T X for a full or upper triangular M (n, columns), zero below its diagonal: X has n rows
// and Y as many as M has columns.
template <class T>
void add_transposed_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                           int n_threads);

}  // namespace eigenfeat
