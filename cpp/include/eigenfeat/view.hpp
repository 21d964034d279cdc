// Views: a pointer with a shape and strides. A view does not own its memory and has no arithmetic.
//
// A MatrixView<T> addresses element (i, j) at data[i * row_stride + j * col_stride]. Callers of
// LAPACK use column-major views (row_stride == 1), NumPy arrays are row-major (col_stride == 1), and
// transposed() converts between the two layouts without a copy.
#pragma once

#include <cstddef>
#include <type_traits>

namespace eigenfeat {

using index_t = std::ptrdiff_t;

template <class T>
struct VectorView {
  T* data = nullptr;
  index_t size = 0;

  T& operator[](index_t i) const { return data[i]; }
  bool empty() const { return size == 0; }
  operator VectorView<const T>() const { return {data, size}; }
};

template <class T>
struct MatrixView {
  T* data = nullptr;
  index_t rows = 0;
  index_t cols = 0;
  index_t row_stride = 1;
  index_t col_stride = 0;

  T& operator()(index_t i, index_t j) const { return data[i * row_stride + j * col_stride]; }
  T* row(index_t i) const { return data + i * row_stride; }
  T* col(index_t j) const { return data + j * col_stride; }

  MatrixView block(index_t i, index_t j, index_t n_rows, index_t n_cols) const {
    return {data + i * row_stride + j * col_stride, n_rows, n_cols, row_stride, col_stride};
  }
  MatrixView transposed() const { return {data, cols, rows, col_stride, row_stride}; }
  bool is_column_major() const { return row_stride == 1; }
  bool is_row_major() const { return col_stride == 1; }

  template <class U = T, class = std::enable_if_t<!std::is_const_v<U>>>
  operator MatrixView<const U>() const {
    return {data, rows, cols, row_stride, col_stride};
  }
};

template <class T>
MatrixView<T> column_major(T* data, index_t rows, index_t cols, index_t leading = 0) {
  return {data, rows, cols, 1, leading == 0 ? rows : leading};
}

template <class T>
MatrixView<T> row_major(T* data, index_t rows, index_t cols, index_t leading = 0) {
  return {data, rows, cols, leading == 0 ? cols : leading, 1};
}

// Compressed sparse rows: row i holds values[indptr[i] .. indptr[i + 1]) in columns indices[...].
// Column indices need not be sorted; duplicates within a row add up.
template <class T>
struct CsrView {
  const T* values = nullptr;
  const index_t* indices = nullptr;
  const index_t* indptr = nullptr;
  index_t rows = 0;
  index_t cols = 0;
};

}  // namespace eigenfeat
