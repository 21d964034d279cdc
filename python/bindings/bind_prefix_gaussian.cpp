// Nested conditional Gaussians for Python.
#include "eigenfeat/prefix_gaussian.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

// None unless the covariance is positive definite to working precision.
std::optional<Array<double>> factorise(const Array<double>& covariance) {
  const auto view = matrix_view(covariance, "covariance");
  auto factor = allocate<double>({view.rows, view.rows});
  const auto out = matrix_output(factor);
  Status status = Status::ok;
  {
    const Unlocked unlocked;
    status = factorise_covariance(view, out);
  }
  if (status != Status::ok) return std::nullopt;
  return factor;
}

Array<double> gains(const Array<double>& factor, const Array<double>& features, int n_threads) {
  const auto l = matrix_view(factor, "factor"), b = matrix_view(features, "features");
  auto result = allocate<double>({l.rows, b.cols});
  const auto out = matrix_output(result);
  {
    const Unlocked unlocked;
    prefix_gains(l, b, out, n_threads);
  }
  return result;
}

Array<double> innovations(const Array<double>& factor, const Array<double>& mean,
                          const Array<double>& rows, index_t t, int n_threads) {
  const auto l = matrix_view(factor, "factor"), x = matrix_view(rows, "rows");
  const auto centre = vector_view(mean, "mean");
  require(t >= 0 && t <= x.cols, "t", "a number in [0, " + std::to_string(x.cols) + "]",
          std::to_string(t));
  auto result = allocate<double>({x.rows, t});
  const auto out = matrix_output(result);
  {
    const Unlocked unlocked;
    prefix_innovations(l, centre, x, out, n_threads);
  }
  return result;
}

Array<double> means(const Array<double>& gain, const Array<double>& mean,
                    const Array<double>& innovation, const Array<index_t>& steps, int n_threads) {
  const auto k = matrix_view(gain, "gains"), e = matrix_view(innovation, "innovations");
  const auto start = vector_view(mean, "mean");
  const auto at = vector_view(steps, "steps");
  auto result = allocate<double>({e.rows, at.size, k.cols});
  const auto out = flat_output(result);
  {
    const Unlocked unlocked;
    prefix_means(k, start, e, at, out, n_threads);
  }
  return result;
}

Array<double> log_densities(const Array<double>& factor, const Array<double>& innovation,
                            const Array<index_t>& steps, int n_threads) {
  const auto l = matrix_view(factor, "factor"), e = matrix_view(innovation, "innovations");
  const auto at = vector_view(steps, "steps");
  auto result = allocate<double>({e.rows, at.size});
  const auto out = matrix_output(result);
  {
    const Unlocked unlocked;
    prefix_log_densities(l, e, at, out, n_threads);
  }
  return result;
}

Array<double> covariances(const Array<double>& gain, const Array<index_t>& steps, int n_threads) {
  const auto k = matrix_view(gain, "gains");
  const auto at = vector_view(steps, "steps");
  auto result = allocate<double>({at.size, k.cols, k.cols});
  const auto out = flat_output(result);
  {
    const Unlocked unlocked;
    prefix_covariances(k, at, out, n_threads);
  }
  return result;
}

Array<double> variances(const Array<double>& gain, const Array<index_t>& steps) {
  const auto k = matrix_view(gain, "gains");
  const auto at = vector_view(steps, "steps");
  auto result = allocate<double>({at.size, k.cols});
  const auto out = matrix_output(result);
  {
    const Unlocked unlocked;
    prefix_variances(k, at, out);
  }
  return result;
}

}  // namespace

void register_prefix_gaussian(py::module_& module) {
  const auto array = [](const char* name) { return py::arg(name).noconvert(); };
  module.def("factorise_covariance", &factorise, array("covariance"));
  module.def("prefix_gains", &gains, array("factor"), array("features"), "n_threads"_a);
  module.def("prefix_innovations", &innovations, array("factor"), array("mean"), array("rows"),
             "t"_a, "n_threads"_a);
  module.def("prefix_means", &means, array("gains"), array("mean"), array("innovations"),
             array("steps"), "n_threads"_a);
  module.def("prefix_log_densities", &log_densities, array("factor"), array("innovations"),
             array("steps"), "n_threads"_a);
  module.def("prefix_covariances", &covariances, array("gains"), array("steps"), "n_threads"_a);
  module.def("prefix_variances", &variances, array("gains"), array("steps"));
}

}  // namespace eigenfeat::bindings
