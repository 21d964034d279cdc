// Moreau envelopes of the multiclass hinge for Python.
#include "eigenfeat/hinge_envelope.hpp"

#include <algorithm>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

struct HingeEnvelopes {
  Array<double> duals, values, gaps;
};

HingeEnvelopes envelope(const Array<double>& scores, const Array<double>& gram,
                        const Array<std::int32_t>& labels, const Array<double>& costs,
                        double margin, double variance, const Array<double>& start,
                        double tolerance, index_t max_steps, int n_threads) {
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
  HingeEnvelopes out{allocate<double>({from.rows, from.cols}), allocate<double>({from.rows}),
                     allocate<double>({from.rows})};
  const auto duals = matrix_output(out.duals);
  const auto values = flat_output(out.values), gaps = flat_output(out.gaps);
  {
    const Unlocked unlocked;
    std::copy(from.data, from.data + from.rows * from.cols, duals.data);
    hinge_envelope(rows, options, duals, values, gaps, n_threads);
  }
  return out;
}

}  // namespace

void register_hinge_envelope(py::module_& module) {
  py::class_<HingeEnvelopes>(module, "HingeEnvelopes")
      .def_readonly("duals", &HingeEnvelopes::duals)
      .def_readonly("values", &HingeEnvelopes::values)
      .def_readonly("gaps", &HingeEnvelopes::gaps);
  module.def("hinge_envelope", &envelope, py::arg("scores").noconvert(),
             py::arg("gram").noconvert(), py::arg("labels").noconvert(),
             py::arg("costs").noconvert(), "margin"_a, "variance"_a, py::arg("start").noconvert(),
             "tolerance"_a, "max_steps"_a, "n_threads"_a);
}

}  // namespace eigenfeat::bindings
