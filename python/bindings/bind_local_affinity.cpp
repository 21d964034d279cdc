// Scatters between neighbouring rows of a class for Python.
#include "eigenfeat/local_affinity.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

Array<double> sums(const Array<double>& X, const Array<index_t>& counts, index_t n_neighbors,
                   const Array<double>& laplacian, const Array<double>& plain, int n_threads) {
  AffinityRows rows;
  rows.rows = matrix_view(X, "X");
  rows.counts = vector_view(counts, "counts");
  rows.n_neighbors = n_neighbors;
  const auto local = matrix_view(laplacian, "laplacian"), own = matrix_view(plain, "plain");
  auto out = allocate<double>({local.rows, rows.rows.cols, rows.rows.cols});
  const auto view = flat_output(out);
  {
    const Unlocked unlocked;
    affinity_sums(rows, local, own, view, n_threads);
  }
  return out;
}

}  // namespace

void register_local_affinity(py::module_& module) {
  module.def("affinity_sums", &sums, py::arg("X").noconvert(), py::arg("counts").noconvert(),
             "n_neighbors"_a, py::arg("laplacian").noconvert(), py::arg("plain").noconvert(),
             "n_threads"_a);
}

}  // namespace eigenfeat::bindings
