// Convolution features of series for Python.
#include "eigenfeat/convolutions.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;
using IndexArray = Array<index_t>;

ConvolutionPlan plan_of(index_t n_channels, const IndexArray& dilations, const IndexArray& orders,
                        const IndexArray& n_thresholds, const IndexArray& channel_begin,
                        const IndexArray& channels, const IndexArray& rivals) {
  return {n_channels,
          vector_view(dilations, "dilations"),
          vector_view(orders, "orders"),
          vector_view(n_thresholds, "n_thresholds"),
          vector_view(channel_begin, "channel_begin"),
          vector_view(channels, "channels"),
          matrix_view(rivals, "rivals")};
}

template <class T>
Array<T> features_of(const Array<T>& series, const IndexArray& dilations, const IndexArray& orders,
                     const IndexArray& n_thresholds, const IndexArray& channel_begin,
                     const IndexArray& channels, const IndexArray& rivals,
                     const Array<T>& thresholds, const IndexArray& ends, int n_threads) {
  require_dimensions(series, 3, "series");
  const ConvolutionPlan plan =
      plan_of(series.shape(1), dilations, orders, n_thresholds, channel_begin, channels, rivals);
  const auto rows = flattened_rows(series, "series");
  const auto limits = vector_view(thresholds, "thresholds");
  const auto cuts = matrix_view(ends, "ends");
  const index_t width = count_convolution_features(plan, limits.size);
  auto features = allocate<T>({rows.rows, cuts.cols, width});
  MatrixView<T> view = row_major(features.mutable_data(), rows.rows, cuts.cols * width);
  {
    const Unlocked unlocked;
    convolution_features<T>(rows, plan, limits, cuts, view, n_threads);
  }
  return features;
}

template <class T>
Array<T> outputs_of(const Array<T>& series, const IndexArray& dilations, const IndexArray& orders,
                    const IndexArray& n_thresholds, const IndexArray& channel_begin,
                    const IndexArray& channels, const IndexArray& rivals, index_t first_pair,
                    const IndexArray& picked, int n_threads) {
  require_dimensions(series, 3, "series");
  const ConvolutionPlan plan =
      plan_of(series.shape(1), dilations, orders, n_thresholds, channel_begin, channels, rivals);
  const auto rows = flattened_rows(series, "series");
  const auto places = vector_view(picked, "rows");
  auto outputs = allocate<T>({places.size, series.shape(2)});
  const auto view = matrix_output(outputs);
  {
    const Unlocked unlocked;
    convolution_outputs<T>(rows, plan, first_pair, places, view, n_threads);
  }
  return outputs;
}

template <class T>
void register_both(py::module_& module) {
  module.def("convolution_features", &features_of<T>, py::arg("series").noconvert(),
             py::arg("dilations").noconvert(), py::arg("orders").noconvert(),
             py::arg("n_thresholds").noconvert(), py::arg("channel_begin").noconvert(),
             py::arg("channels").noconvert(), py::arg("rivals").noconvert(),
             py::arg("thresholds").noconvert(), py::arg("ends").noconvert(), "n_threads"_a);
  module.def("convolution_outputs", &outputs_of<T>, py::arg("series").noconvert(),
             py::arg("dilations").noconvert(), py::arg("orders").noconvert(),
             py::arg("n_thresholds").noconvert(), py::arg("channel_begin").noconvert(),
             py::arg("channels").noconvert(), py::arg("rivals").noconvert(), "first_pair"_a,
             py::arg("rows").noconvert(), "n_threads"_a);
}

}  // namespace

void register_convolutions(py::module_& module) {
  register_both<float>(module);
  register_both<double>(module);
}

}  // namespace eigenfeat::bindings
