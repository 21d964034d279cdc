// Tangent vectors of covariances for Python.
#include "eigenfeat/tangent_space.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

py::tuple vectors_of(const Array<double>& matrices, const Array<double>& whitening, int n_threads) {
  require_dimensions(matrices, 3, "matrices");
  const index_t n = matrices.shape(0);
  const auto covariances = flattened_rows(matrices, "matrices");
  const auto root = matrix_view(whitening, "whitening");
  auto vectors = allocate<double>({n, root.cols * (root.cols + 1) / 2});
  auto extremes = allocate<double>({n, 2});
  auto status = allocate<int>({n});
  const auto vectors_view = matrix_output(vectors), extremes_view = matrix_output(extremes);
  const auto status_view = flat_output(status);
  {
    const Unlocked unlocked;
    tangent_vectors(covariances, root, vectors_view, extremes_view, status_view, n_threads);
  }
  return py::make_tuple(vectors, extremes, status);
}

py::tuple mean_vector_of(const Array<double>& matrices, const Array<double>& weights,
                         const Array<double>& whitening, int n_threads) {
  require_dimensions(matrices, 3, "matrices");
  const index_t n = matrices.shape(0);
  const auto covariances = flattened_rows(matrices, "matrices");
  const auto root = matrix_view(whitening, "whitening");
  const auto shares = vector_view(weights, "weights");
  auto mean = allocate<double>({root.cols * (root.cols + 1) / 2});
  auto extremes = allocate<double>({n, 2});
  auto status = allocate<int>({n});
  const auto mean_view = flat_output(mean);
  const auto extremes_view = matrix_output(extremes);
  const auto status_view = flat_output(status);
  {
    const Unlocked unlocked;
    mean_tangent_vector(covariances, shares, root, mean_view, extremes_view, status_view,
                        n_threads);
  }
  return py::make_tuple(mean, extremes, status);
}

template <class T>
Array<double> covariances_of(const Array<T>& epochs, int n_threads) {
  require_dimensions(epochs, 3, "epochs");
  const index_t n = epochs.shape(0), channels = epochs.shape(1);
  const auto samples = flattened_rows(epochs, "epochs");
  auto covariances = allocate<double>({n, channels, channels});
  const auto out = row_major(covariances.mutable_data(), n, channels * channels);
  {
    const Unlocked unlocked;
    epoch_covariances(samples, channels, out, n_threads);
  }
  return covariances;
}

}  // namespace

void register_tangent_space(py::module_& module) {
  module.def("tangent_vectors", &vectors_of, py::arg("matrices").noconvert(),
             py::arg("whitening").noconvert(), "n_threads"_a);
  module.def("mean_tangent_vector", &mean_vector_of, py::arg("matrices").noconvert(),
             py::arg("weights").noconvert(), py::arg("whitening").noconvert(), "n_threads"_a);
  module.def("epoch_covariances", &covariances_of<float>, py::arg("epochs").noconvert(),
             "n_threads"_a);
  module.def("epoch_covariances", &covariances_of<double>, py::arg("epochs").noconvert(),
             "n_threads"_a);
}

}  // namespace eigenfeat::bindings
