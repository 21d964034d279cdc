// The fused projection and expansion for Python.
#include "eigenfeat/expansion.hpp"

#include "eigenfeat/vector.hpp"
#include "expansion_arguments.hpp"
#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

template <class T, class Rows>
Array<T> expand_rows(const Rows& rows, const Array<T>& directions,
                     const std::optional<Array<T>>& offset, const Expansion& expansion,
                     int n_threads) {
  const auto vectors = matrix_view(directions, "directions");
  const auto offsets = vector_view(offset, "offset");
  auto out = allocate<T>({rows.rows, expanded_columns(expansion, rows.cols, vectors.cols)});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    expand<T>(rows, vectors, offsets, expansion, view, n_threads);
  }
  return out;
}

template <class T>
Array<T> expand_dense(const Array<T>& X, const Array<T>& directions,
                      const std::optional<Array<T>>& offset, const std::string& wave,
                      const Vector<int>& powers, bool include_input, int n_threads) {
  return expand_rows(matrix_view(X, "X"), directions, offset,
                     Expansion{parse_wave(wave), powers, include_input}, n_threads);
}

template <class T>
Array<T> expand_csr(const Array<T>& data, const Array<index_t>& indices,
                    const Array<index_t>& indptr, index_t n_columns, const Array<T>& directions,
                    const std::optional<Array<T>>& offset, const std::string& wave,
                    const Vector<int>& powers, bool include_input, int n_threads) {
  return expand_rows(csr_view(data, indices, indptr, n_columns), directions, offset,
                     Expansion{parse_wave(wave), powers, include_input}, n_threads);
}

template <class T>
void register_expand(py::module_& module) {
  module.def("expand_dense", &expand_dense<T>, py::arg("X").noconvert(),
             py::arg("directions").noconvert(), py::arg("offset").noconvert().none(true), "wave"_a,
             "powers"_a, "include_input"_a, "n_threads"_a);
  module.def("expand_csr", &expand_csr<T>, py::arg("data").noconvert(),
             py::arg("indices").noconvert(), py::arg("indptr").noconvert(), "n_columns"_a,
             py::arg("directions").noconvert(), py::arg("offset").noconvert().none(true), "wave"_a,
             "powers"_a, "include_input"_a, "n_threads"_a);
}

}  // namespace

void register_expansion(py::module_& module) {
  register_expand<float>(module);
  register_expand<double>(module);
}

}  // namespace eigenfeat::bindings
