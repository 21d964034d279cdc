// Views of NumPy arrays, and new arrays for results. No other file uses py::array.
//
// Array<T> is a C-contiguous array of exactly T. Arguments of this type are declared noconvert(), which
// prevents silent copies: the facade converts arrays, and other dtypes raise TypeError here. Wrong
// shapes throw std::invalid_argument "name: expected what, got what".
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "vectors.hpp"

namespace eigenfeat::bindings {

namespace py = pybind11;

template <class T>
using Array = py::array_t<T, py::array::c_style>;

// Exactly T, with any strides.
template <class T>
using Strided = py::array_t<T, 0>;

inline void require_dimensions(const py::array& array, py::ssize_t n, const char* name) {
  require(array.ndim() == n, name, std::to_string(n) + " dimensions", std::to_string(array.ndim()));
}

// Pointer to the entries. NumPy arrays may begin at any byte; arrays that T's alignment forbids are
// refused.
template <class T, int flags>
const T* aligned_data(const py::array_t<T, flags>& array, const char* name) {
  const T* data = array.data();
  const auto offset = reinterpret_cast<std::uintptr_t>(data) % alignof(T);
  require(offset == 0, name, "an aligned array",
          "an offset of " + std::to_string(offset) + " bytes");
  return data;
}

template <class T>
VectorView<const T> vector_view(const Array<T>& array, const char* name) {
  require_dimensions(array, 1, name);
  return {aligned_data(array, name), array.shape(0)};
}

// None is an empty view.
template <class T>
VectorView<const T> vector_view(const std::optional<Array<T>>& array, const char* name) {
  return array ? vector_view(*array, name) : VectorView<const T>{};
}

template <class T>
MatrixView<const T> matrix_view(const Array<T>& array, const char* name) {
  require_dimensions(array, 2, name);
  return row_major(aligned_data(array, name), array.shape(0), array.shape(1));
}

// An array (n, d) of contiguous rows, or of contiguous columns with any stride between columns.
template <class T>
MatrixView<const T> rows_view(const Strided<T>& array, const char* name) {
  require_dimensions(array, 2, name);
  if ((array.flags() & py::array::c_style) != 0)
    return row_major(aligned_data(array, name), array.shape(0), array.shape(1));
  const py::ssize_t size = static_cast<py::ssize_t>(sizeof(T)), distance = array.strides(1);
  require(array.strides(0) == size && distance % size == 0, name, "contiguous rows or columns",
          "strides of " + std::to_string(array.strides(0)) + " and " + std::to_string(distance) +
              " bytes");
  return {aligned_data(array, name), array.shape(0), array.shape(1), 1, distance / size};
}

// A stack (n, r, c) as n * r rows of length c (stacked_rows), or as n rows of length r * c.
template <class T>
MatrixView<const T> stacked_rows(const Array<T>& array, const char* name) {
  require_dimensions(array, 3, name);
  return row_major(aligned_data(array, name), array.shape(0) * array.shape(1), array.shape(2));
}
template <class T>
MatrixView<const T> flattened_rows(const Array<T>& array, const char* name) {
  require_dimensions(array, 3, name);
  return row_major(aligned_data(array, name), array.shape(0), array.shape(1) * array.shape(2));
}

template <class T>
Vector<MatrixView<const T>> matrix_views(const Vector<Array<T>>& arrays, const char* name) {
  Vector<MatrixView<const T>> views;
  views.reserve(arrays.size());
  for (const auto& array : arrays) views.push_back(matrix_view(array, name));
  return views;
}

template <class T>
Vector<VectorView<const T>> vector_views(const Vector<Array<T>>& arrays, const char* name) {
  Vector<VectorView<const T>> views;
  views.reserve(arrays.size());
  for (const auto& array : arrays) views.push_back(vector_view(array, name));
  return views;
}

template <class T>
Vector<T> vector_copy(const Array<T>& array, const char* name) {
  const auto view = vector_view(array, name);
  return {view.data, view.data + view.size};
}

inline Vector<std::pair<index_t, index_t>> index_pairs(const Array<index_t>& array,
                                                       const char* name) {
  const auto view = matrix_view(array, name);
  require(view.cols == 2, name, "2 columns", std::to_string(view.cols));
  Vector<std::pair<index_t, index_t>> pairs;
  pairs.reserve(view.rows);
  for (index_t i = 0; i < view.rows; ++i) pairs.emplace_back(view(i, 0), view(i, 1));
  return pairs;
}

// Checks the lengths of the three arrays of sparse rows.
inline void check_parts(VectorView<const index_t> indptr, index_t n_indices, index_t n_values) {
  require(n_indices == n_values, "indices", std::to_string(n_values) + " entries, as data",
          std::to_string(n_indices));
  require(indptr.size > 0, "indptr", "at least one entry", "none");
  const index_t last = indptr[indptr.size - 1];
  require(last == n_values, "indptr",
          "a last entry of " + std::to_string(n_values) + ", the length of data",
          std::to_string(last));
}

// The core checks column indices and the order of indptr (base/csr.hpp).
template <class T>
CsrView<T> csr_view(const Array<T>& data, const Array<index_t>& indices,
                    const Array<index_t>& indptr, index_t n_columns) {
  const auto starts = vector_view(indptr, "indptr");
  const auto columns = vector_view(indices, "indices");
  const auto values = vector_view(data, "data");
  check_parts(starts, columns.size, values.size);
  require(starts[0] == 0, "indptr", "a first entry of 0", std::to_string(starts[0]));
  return {values.data, columns.data, starts.data, starts.size - 1, n_columns};
}

// A new array; std::bad_alloc, which is a MemoryError, if its bytes exceed the range of index_t.
template <class T>
Array<T> allocate(std::vector<py::ssize_t> shape) {
  py::ssize_t room = std::numeric_limits<py::ssize_t>::max() / py::ssize_t{sizeof(T)};
  for (const py::ssize_t size : shape) {
    require(size >= 0, "shape", "lengths >= 0", std::to_string(size));
    if (size > room) throw std::bad_alloc();
    if (size > 1) room /= size;
  }
  return Array<T>(std::move(shape));
}

// A one-dimensional view of all entries.
template <class T>
VectorView<T> flat_output(Array<T>& array) {
  return {array.mutable_data(), array.size()};
}

template <class T>
MatrixView<T> matrix_output(Array<T>& array) {
  return row_major(array.mutable_data(), array.shape(0), array.shape(1));
}

inline Array<double> array_copy(const Vector<double>& values) {
  return Array<double>(values.size(), values.data());
}

}  // namespace eigenfeat::bindings
