// Products of sparse rows and a dense block of vectors, for d too large for a d x d matrix.
//
//   out (n, b) <- X V,  or out + X V with X (n, d) in compressed rows and V (d, b) row-major
//
// X^T U is the product of the transposed rows (`transpose_rows`) and U. Every entry of a result is
// one sum in the order of the entries of its row, computed by one thread: results are bit-for-bit
// identical for any number of threads. Columns are 32-bit, which saves a third of the memory.
// Values may be float and vectors double; products and sums are then double.
//
// Cost: 2 nnz b flops, and nnz reads of rows of V, which are cached if columns are numbered by
// frequency. Tasks are ranges of rows with about 2^15 entries.
//
// Sources: class moments as operators, C_i v = X_i^T (X_i v) / W_i: Karampatziakis and Mineiro 2014,
// section 5; Saibaba, Lee and Kitanidis 2016.
#pragma once

#include <cstdint>

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Row i: values[indptr[i] .. indptr[i + 1]) in columns indices[...], which need not be sorted.
template <class T>
struct CompactRows {
  const T* values = nullptr;
  const std::int32_t* indices = nullptr;
  const index_t* indptr = nullptr;
  index_t rows = 0;
  index_t cols = 0;
};

// Throws std::invalid_argument unless indptr ascends from 0 and columns are in range.
template <class T>
void check_rows(const CompactRows<T>& x);

// T is the type of the values and S of the vectors: float and float, float and double, or double and
// double. `v` and `out` may be columns of wider row-major matrices; they must not overlap. The
// caller has checked `x`. Throws std::invalid_argument if shapes do not conform.
template <class T, class S>
void multiply_rows(const CompactRows<T>& x, MatrixView<const S> v, MatrixView<S> out, bool add,
                   int n_threads);

// X^T in compressed rows: arrays of nnz, nnz and cols + 1 entries. Row numbers ascend within a
// column of X. One thread, O(nnz + cols).
template <class T>
void transpose_rows(const CompactRows<T>& x, VectorView<T> values, VectorView<std::int32_t> indices,
                    VectorView<index_t> indptr);

}  // namespace eigenfeat
