// Joint training of layers for Python.
#include "eigenfeat/layer_training.hpp"

#include <memory>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

using Floats = Array<float>;
using Training = LayerTraining<float>;

// x -> x matrix + offset.
struct AffineMap {
  Floats matrix, offset;
};

std::unique_ptr<Training> begin(const Vector<Floats>& directions, const Vector<Floats>& offsets,
                                const Vector<Vector<int>>& powers,
                                const Vector<std::pair<float, float>>& rates, const Floats& weights,
                                const Floats& intercept, const Floats& centre,
                                const Floats& weight_rates, float intercept_rate,
                                bool includes_input) {
  const TrainedLayers<float> layers{matrix_views(directions, "directions"),
                                    vector_views(offsets, "offsets"), powers, rates};
  const TrainedLogit<float> logit{matrix_view(weights, "weights"),
                                  vector_view(intercept, "intercept"),
                                  vector_view(centre, "centre"),
                                  vector_view(weight_rates, "weight_rates"),
                                  intercept_rate,
                                  includes_input};
  const Unlocked unlocked;
  return std::make_unique<Training>(layers, logit);
}

TrainingLosses step(Training& training, const Floats& rows, const Array<std::int32_t>& labels,
                    const std::optional<Floats>& row_weights, float shift, float rate,
                    int n_threads) {
  const auto of_rows = matrix_view(rows, "rows");
  const auto of_labels = vector_view(labels, "labels");
  const auto of_weights = vector_view(row_weights, "row_weights");
  const Unlocked unlocked;
  return training.step(of_rows, of_labels, of_weights, shift, rate, n_threads);
}

AffineMap layer(const Training& training, index_t number, index_t rows, index_t cols) {
  AffineMap out{allocate<float>({rows, cols}), allocate<float>({cols})};
  training.layer(number, matrix_output(out.matrix), flat_output(out.offset));
  return out;
}

AffineMap logit(const Training& training, index_t rows, index_t cols) {
  AffineMap out{allocate<float>({rows, cols}), allocate<float>({cols})};
  training.logit(matrix_output(out.matrix), flat_output(out.offset));
  return out;
}

template <class T>
auto standardised(const Array<T>& rows, const Array<double>& centre, const Array<double>& scale,
                  int n_threads) {
  const auto from = matrix_view(rows, "rows");
  const auto of_centre = vector_view(centre, "centre");
  const auto of_scale = vector_view(scale, "scale");
  auto out = allocate<float>({from.rows, from.cols});
  const auto to = matrix_output(out);
  {
    const Unlocked unlocked;
    standardise<T>(from, of_centre, of_scale, to, n_threads);
  }
  return out;
}

template <class T>
void register_standardised(py::module_& module) {
  module.def("standardised_rows", &standardised<T>, py::arg("rows").noconvert(), "centre"_a,
             "scale"_a, "n_threads"_a);
}

}  // namespace

void register_layer_training(py::module_& module) {
  register_standardised<float>(module);
  register_standardised<double>(module);
  py::class_<TrainingLosses>(module, "TrainingLosses")
      .def_readonly("loss", &TrainingLosses::loss)
      .def_readonly("shifted", &TrainingLosses::shifted);
  py::class_<AffineMap>(module, "AffineMap")
      .def_readonly("matrix", &AffineMap::matrix)
      .def_readonly("offset", &AffineMap::offset);
  py::class_<Training>(module, "LayerTraining")
      .def(py::init(&begin), py::kw_only(), "directions"_a, "offsets"_a, "powers"_a, "rates"_a,
           py::arg("weights").noconvert(), py::arg("intercept").noconvert(),
           py::arg("centre").noconvert(), py::arg("weight_rates").noconvert(), "intercept_rate"_a,
           "includes_input"_a)
      .def("step", &step, py::arg("rows").noconvert(), py::arg("labels").noconvert(),
           py::arg("row_weights").noconvert().none(true), "shift"_a, "rate"_a, "n_threads"_a)
      .def("layer", &layer, "number"_a, "rows"_a, "cols"_a)
      .def("logit", &logit, "rows"_a, "cols"_a);
}

}  // namespace eigenfeat::bindings
