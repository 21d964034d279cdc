// Minima of separable quadratics over boxes for Python.
#include "eigenfeat/box.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

py::tuple minimise_in_box(const Array<double>& a, const Array<double>& g,
                          const Array<double>& half_widths, int n_threads) {
  const auto slopes = matrix_view(g, "g");
  const auto curvatures = broadcast_view(a, slopes.rows, "A");
  const auto widths = broadcast_view(half_widths, slopes.rows, "half_widths");
  auto values = allocate<double>({slopes.rows});
  auto points = allocate<double>({slopes.rows, slopes.cols});
  const auto value_view = flat_output(values);
  const auto point_view = matrix_output(points);
  {
    const Unlocked unlocked;
    minimise_over_box(curvatures, slopes, widths, value_view, point_view, n_threads);
  }
  return py::make_tuple(values, points);
}

}  // namespace

void register_box(py::module_& module) {
  module.def("minimise_over_box", &minimise_in_box, py::arg("A").noconvert(),
             py::arg("g").noconvert(), py::arg("half_widths").noconvert(), "n_threads"_a);
}

}  // namespace eigenfeat::bindings
