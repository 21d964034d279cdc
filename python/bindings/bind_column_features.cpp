// Ranks, bins and splines of columns for Python.
#include "eigenfeat/column_features.hpp"

#include <algorithm>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

template <class T>
Array<float> ranks_of(const Array<T>& x, const Array<index_t>& columns, const Array<T>& quantiles,
                      const Array<double>& shares, int n_threads) {
  const auto rows = matrix_view(x, "x");
  const auto chosen = vector_view(columns, "columns");
  const auto q = matrix_view(quantiles, "quantiles");
  const auto s = matrix_view(shares, "shares");
  auto ranks = allocate<float>({rows.rows, chosen.size});
  const auto view = matrix_output(ranks);
  {
    const Unlocked unlocked;
    column_ranks<T>(rows, chosen, q, s, view, n_threads);
  }
  return ranks;
}

template <class T>
Array<index_t> bins_of(const Array<T>& x, const Array<index_t>& columns, const Array<double>& edges,
                       const Array<index_t>& starts, int n_threads) {
  const auto rows = matrix_view(x, "x");
  const auto chosen = vector_view(columns, "columns");
  const auto bounds = vector_view(edges, "edges");
  const auto firsts = vector_view(starts, "starts");
  auto bins = allocate<index_t>({rows.rows, chosen.size});
  const auto view = matrix_output(bins);
  {
    const Unlocked unlocked;
    column_bins<T>(rows, chosen, bounds, firsts, view, n_threads);
  }
  return bins;
}

template <class T>
Array<float> splines_of(const Array<T>& x, const Array<index_t>& columns,
                        const Array<double>& knots, const Array<index_t>& starts, int n_threads) {
  const auto rows = matrix_view(x, "x");
  const auto chosen = vector_view(columns, "columns");
  const auto t = vector_view(knots, "knots");
  const auto firsts = vector_view(starts, "starts");
  // The core refuses too few knots, for which the difference may be negative.
  const index_t width = std::max(index_t{0}, t.size - chosen.size * (kSplineDegree + 2));
  auto out = allocate<float>({rows.rows, width});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    column_splines<T>(rows, chosen, t, firsts, view, n_threads);
  }
  return out;
}

template <class T>
void register_columns_of(py::module_& module) {
  module.def("column_ranks", &ranks_of<T>, py::arg("x").noconvert(), py::arg("columns").noconvert(),
             py::arg("quantiles").noconvert(), py::arg("shares").noconvert(), "n_threads"_a);
  module.def("column_bins", &bins_of<T>, py::arg("x").noconvert(), py::arg("columns").noconvert(),
             py::arg("edges").noconvert(), py::arg("starts").noconvert(), "n_threads"_a);
  module.def("column_splines", &splines_of<T>, py::arg("x").noconvert(),
             py::arg("columns").noconvert(), py::arg("knots").noconvert(),
             py::arg("starts").noconvert(), "n_threads"_a);
}

}  // namespace

void register_column_features(py::module_& module) {
  register_columns_of<float>(module);
  register_columns_of<double>(module);
}

}  // namespace eigenfeat::bindings
