// Joint training of layers for Python.
#include "eigenfeat/layer_training.hpp"

#include <memory>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

template <class T>
std::unique_ptr<LayerTraining<T>> begin(const Vector<Array<T>>& directions,
                                        const Vector<Array<T>>& offsets,
                                        const Vector<Vector<int>>& powers,
                                        const Vector<std::pair<T, T>>& rates,
                                        const Array<T>& weights, const Array<T>& intercept,
                                        const Array<T>& centre, const Array<T>& weight_rates,
                                        T intercept_rate, bool includes_input) {
  const TrainedLayers<T> layers{matrix_views(directions, "directions"),
                                vector_views(offsets, "offsets"), powers, rates};
  const TrainedLogit<T> logit{matrix_view(weights, "weights"),
                              vector_view(intercept, "intercept"),
                              vector_view(centre, "centre"),
                              vector_view(weight_rates, "weight_rates"),
                              intercept_rate,
                              includes_input};
  const Unlocked unlocked;
  return std::make_unique<LayerTraining<T>>(layers, logit);
}

template <class T>
py::tuple step(LayerTraining<T>& training, const Array<T>& rows, const Array<std::int32_t>& labels,
               const std::optional<Array<T>>& row_weights, T shift, T rate, int n_threads) {
  const auto of_rows = matrix_view(rows, "rows");
  const auto of_labels = vector_view(labels, "labels");
  const auto of_weights = vector_view(row_weights, "row_weights");
  TrainingLosses losses;
  {
    const Unlocked unlocked;
    losses = training.step(of_rows, of_labels, of_weights, shift, rate, n_threads);
  }
  return py::make_tuple(losses.loss, losses.shifted);
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

template <class T>
void register_training(py::module_& module, const char* name) {
  using Training = LayerTraining<T>;
  py::class_<Training>(module, name)
      .def(py::init(&begin<T>), py::kw_only(), "directions"_a, "offsets"_a, "powers"_a, "rates"_a,
           py::arg("weights").noconvert(), py::arg("intercept").noconvert(),
           py::arg("centre").noconvert(), py::arg("weight_rates").noconvert(), "intercept_rate"_a,
           "includes_input"_a)
      .def("step", &step<T>, py::arg("rows").noconvert(), py::arg("labels").noconvert(),
           py::arg("row_weights").noconvert().none(true), "shift"_a, "rate"_a, "n_threads"_a)
      .def(
          "layer",
          [](const Training& training, index_t number, index_t rows, index_t cols) {
            auto directions = allocate<T>({rows, cols});
            auto offset = allocate<T>({cols});
            training.layer(number, matrix_output(directions), flat_output(offset));
            return py::make_tuple(directions, offset);
          },
          "number"_a, "rows"_a, "cols"_a)
      .def(
          "logit",
          [](const Training& training, index_t rows, index_t cols) {
            auto weights = allocate<T>({rows, cols});
            auto intercept = allocate<T>({cols});
            training.logit(matrix_output(weights), flat_output(intercept));
            return py::make_tuple(weights, intercept);
          },
          "rows"_a, "cols"_a);
}

}  // namespace

void register_layer_training(py::module_& module) {
  register_standardised<float>(module);
  register_standardised<double>(module);
  register_training<float>(module, "LayerTraining32");
  register_training<double>(module, "LayerTraining64");
}

}  // namespace eigenfeat::bindings
