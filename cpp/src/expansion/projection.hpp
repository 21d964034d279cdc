// Private to the core: projections p = V^T x + offset of a range of rows.
#pragma once

#include <algorithm>

#include "base/vectors.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/view.hpp"
#include "expansion/nonzero_projection.hpp"
#include "kernels/wave_kernels.hpp"

namespace eigenfeat {

// p (r, F) row-major <- offset
template <class T>
void fill_offset(VectorView<const T> offset, MatrixView<T> p) {
  for (index_t r = 0; r < p.rows; ++r) {
    if (offset.empty()) {
      std::fill(p.row(r), p.row(r) + p.cols, T(0));
    } else {
      std::copy(offset.data, offset.data + offset.size, p.row(r));
    }
  }
}

// p (r, F) row-major <- rows [begin, begin + r) of x times directions, plus offset (or empty)
template <class T>
void project(MatrixView<const T> x, index_t begin, MatrixView<const T> directions,
             VectorView<const T> offset, MatrixView<T> p) {
  fill_offset(offset, p);
  const MatrixView<const T> rows = x.block(begin, 0, p.rows, x.cols);
  if (add_nonzeros(rows, directions, p)) return;
  gemm<T>(Op::none, Op::none, T(1), directions.transposed(), rows.transposed(), T(1),
          p.transposed());
}

template <class T>
void project(const CsrView<T>& x, index_t begin, MatrixView<const T> directions,
             VectorView<const T> offset, MatrixView<T> p) {
  fill_offset(offset, p);
  for (index_t r = 0; r < p.rows; ++r) {
    for (index_t q = x.indptr[begin + r]; q < x.indptr[begin + r + 1]; ++q) {
      add_multiple(x.values[q], directions.row(x.indices[q]), p.cols, p.row(r));
    }
  }
}

// out (d) <- row i of x
template <class T>
void copy_row(MatrixView<const T> x, index_t i, T* out) {
  std::copy(x.row(i), x.row(i) + x.cols, out);
}

template <class T>
void copy_row(const CsrView<T>& x, index_t i, T* out) {
  std::fill(out, out + x.cols, T(0));
  for (index_t q = x.indptr[i]; q < x.indptr[i + 1]; ++q) out[x.indices[q]] += x.values[q];
}

}  // namespace eigenfeat
