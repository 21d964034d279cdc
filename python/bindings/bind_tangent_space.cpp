// Tangent vectors of covariances for Python.
#include "eigenfeat/tangent_space.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

Array<double> vectors_of(const Array<double>& matrices, const Array<double>& whitening,
                         int n_threads) {
  const auto covariances = flattened_rows(matrices, "matrices");
  const auto root = matrix_view(whitening, "whitening");
  auto vectors = allocate<double>({covariances.rows, root.cols * (root.cols + 1) / 2});
  const auto view = matrix_output(vectors);
  {
    const Unlocked unlocked;
    tangent_vectors(covariances, root, view, n_threads);
  }
  return vectors;
}

struct MeanTangentVector {
  Array<double> mean, extremes;
  Array<int> status;
};

MeanTangentVector mean_vector_of(const Array<double>& matrices, const Array<double>& weights,
                                 const Array<double>& whitening, int n_threads) {
  const auto covariances = flattened_rows(matrices, "matrices");
  const index_t n = covariances.rows;
  const auto root = matrix_view(whitening, "whitening");
  const auto shares = vector_view(weights, "weights");
  MeanTangentVector out{allocate<double>({root.cols * (root.cols + 1) / 2}),
                        allocate<double>({n, 2}), allocate<int>({n})};
  const auto mean = flat_output(out.mean);
  const auto extremes = matrix_output(out.extremes);
  const auto status = flat_output(out.status);
  {
    const Unlocked unlocked;
    mean_tangent_vector(covariances, shares, root, mean, extremes, status, n_threads);
  }
  return out;
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
  py::class_<MeanTangentVector>(module, "MeanTangentVector")
      .def_readonly("mean", &MeanTangentVector::mean)
      .def_readonly("extremes", &MeanTangentVector::extremes)
      .def_readonly("status", &MeanTangentVector::status);
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
