// Moreau envelopes of the multiclass hinge for Python.
#include "eigenfeat/hinge_envelope.hpp"

#include <algorithm>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

py::tuple envelope(const Array<double>& scores, const Array<double>& gram,
                   const Array<std::int32_t>& labels, const Array<double>& costs, double margin,
                   double variance, const Array<double>& start, double tolerance, index_t max_steps,
                   int n_threads) {
  const HingeRows rows{matrix_view(scores, "scores"),
                       matrix_view(gram, "gram"),
                       vector_view(labels, "labels"),
                       vector_view(costs, "costs"),
                       margin,
                       variance};
  const HingeOptions options{tolerance, max_steps};
  const auto from = matrix_view(start, "start");
  require(from.rows == rows.scores.rows && from.cols == rows.scores.cols, "start",
          "the shape of scores, " + std::to_string(rows.scores.rows) + " x " +
              std::to_string(rows.scores.cols),
          std::to_string(from.rows) + " x " + std::to_string(from.cols));
  auto a = allocate<double>({from.rows, from.cols});
  auto values = allocate<double>({from.rows}), gaps = allocate<double>({from.rows});
  const auto a_view = matrix_output(a);
  const auto values_view = flat_output(values), gaps_view = flat_output(gaps);
  {
    const Unlocked unlocked;
    std::copy(from.data, from.data + from.rows * from.cols, a_view.data);
    hinge_envelope(rows, options, a_view, values_view, gaps_view, n_threads);
  }
  return py::make_tuple(a, values, gaps);
}

}  // namespace

void register_hinge_envelope(py::module_& module) {
  module.def("hinge_envelope", &envelope, py::arg("scores").noconvert(),
             py::arg("gram").noconvert(), py::arg("labels").noconvert(),
             py::arg("costs").noconvert(), "margin"_a, "variance"_a, py::arg("start").noconvert(),
             "tolerance"_a, "max_steps"_a, "n_threads"_a);
}

}  // namespace eigenfeat::bindings
