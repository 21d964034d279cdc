// Sparse rows times dense blocks for Python.
#include "eigenfeat/sparse_rows.hpp"

#include <algorithm>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;
using Indices = Array<std::int32_t>;
using Starts = Array<index_t>;

// Rows with checked indices and starts.
template <class T>
CompactRows<T> compact_rows(const Array<T>& data, const Indices& indices, const Starts& indptr,
                            index_t n_columns) {
  const auto starts = vector_view(indptr, "indptr");
  const auto values = vector_view(data, "data");
  const auto columns = vector_view(indices, "indices");
  check_parts(starts, columns.size, values.size);
  const CompactRows<T> x{values.data, columns.data, starts.data, starts.size - 1, n_columns};
  const Unlocked unlocked;
  check_rows(x);
  return x;
}

template <class T>
void check(const Array<T>& data, const Indices& indices, const Starts& indptr, index_t n_columns) {
  compact_rows(data, indices, indptr, n_columns);
}

// Multiplies the rows by `width` columns of V, from v_first on, into columns of out, from out_first on.
template <class T, class S>
void multiply(const Array<T>& data, const Indices& indices, const Starts& indptr, index_t n_columns,
              const Array<S>& V, index_t v_first, Array<S>& out, index_t out_first, index_t width,
              bool add, int n_threads) {
  const auto x = compact_rows(data, indices, indptr, n_columns);
  const auto v = matrix_view(V, "V");
  require_dimensions(out, 2, "out");
  const auto result = matrix_output(out);
  const index_t most = std::min(v.cols, result.cols);
  require(width >= 0 && width <= most, "width", "a number in [0, " + std::to_string(most) + "]",
          std::to_string(width));
  require(v_first >= 0 && v_first <= v.cols - width, "v_first",
          "a number in [0, " + std::to_string(v.cols - width) + "]", std::to_string(v_first));
  require(out_first >= 0 && out_first <= result.cols - width, "out_first",
          "a number in [0, " + std::to_string(result.cols - width) + "]",
          std::to_string(out_first));
  const Unlocked unlocked;
  multiply_rows<T, S>(x, v.block(0, v_first, v.rows, width),
                      result.block(0, out_first, result.rows, width), add, n_threads);
}

// Sparse rows with data of float or double.
struct SparseArrays {
  py::object data;
  Indices indices;
  Starts indptr;
};

template <class T>
SparseArrays transposed(const Array<T>& data, const Indices& indices, const Starts& indptr,
                        index_t n_columns) {
  const auto x = compact_rows(data, indices, indptr, n_columns);
  auto values = allocate<T>({data.size()});
  auto rows = allocate<std::int32_t>({data.size()});
  auto starts = allocate<index_t>({n_columns + 1});
  const auto to_values = flat_output(values);
  const auto to_rows = flat_output(rows);
  const auto to_starts = flat_output(starts);
  {
    const Unlocked unlocked;
    transpose_rows<T>(x, to_values, to_rows, to_starts);
  }
  return {std::move(values), std::move(rows), std::move(starts)};
}

template <class T, class S>
void register_product(py::module_& module) {
  module.def("multiply_rows", &multiply<T, S>, py::arg("data").noconvert(),
             py::arg("indices").noconvert(), py::arg("indptr").noconvert(), "n_columns"_a,
             py::arg("V").noconvert(), "v_first"_a, py::arg("out").noconvert(), "out_first"_a,
             "width"_a, "add"_a, "n_threads"_a);
}

template <class T>
void register_sparse_rows_of(py::module_& module) {
  module.def("check_compact_rows", &check<T>, py::arg("data").noconvert(),
             py::arg("indices").noconvert(), py::arg("indptr").noconvert(), "n_columns"_a);
  module.def("transpose_rows", &transposed<T>, py::arg("data").noconvert(),
             py::arg("indices").noconvert(), py::arg("indptr").noconvert(), "n_columns"_a);
}

}  // namespace

void register_sparse_rows(py::module_& module) {
  py::class_<SparseArrays>(module, "SparseArrays")
      .def_readonly("data", &SparseArrays::data)
      .def_readonly("indices", &SparseArrays::indices)
      .def_readonly("indptr", &SparseArrays::indptr);
  register_sparse_rows_of<float>(module);
  register_sparse_rows_of<double>(module);
  register_product<float, float>(module);
  register_product<float, double>(module);
  register_product<double, double>(module);
}

}  // namespace eigenfeat::bindings
