// Limited-memory BFGS for Python: arrays of any shape, taken as vectors.
#include "eigenfeat/lbfgs.hpp"

#include <memory>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

VectorView<const double> flat(const Lbfgs& search, const Array<double>& array, const char* name) {
  require(array.size() == search.size(), name, std::to_string(search.size()) + " numbers",
          std::to_string(array.size()));
  return {aligned_data(array, name), array.size()};
}

struct LbfgsDirection {
  Array<double> vector;
  double slope, squared_norm;
};

LbfgsDirection direction(Lbfgs& search, const Array<double>& gradient,
                         const Array<double>& solved) {
  const auto g = flat(search, gradient, "gradient"), s = flat(search, solved, "solved");
  auto out = allocate<double>({gradient.shape(), gradient.shape() + gradient.ndim()});
  const auto view = flat_output(out);
  Lbfgs::Slopes slopes;
  {
    const Unlocked unlocked;
    slopes = search.direction(g, s, view);
  }
  return {std::move(out), slopes.slope, slopes.squared_norm};
}

void remember(Lbfgs& search, const Array<double>& from, const Array<double>& to,
              const Array<double>& gradient_before, const Array<double>& gradient_after,
              const Array<double>& solved_before, const Array<double>& solved_after) {
  const auto x = flat(search, from, "from"), x_after = flat(search, to, "to");
  const auto g = flat(search, gradient_before, "gradient_before");
  const auto g_after = flat(search, gradient_after, "gradient_after");
  const auto s = flat(search, solved_before, "solved_before");
  const auto s_after = flat(search, solved_after, "solved_after");
  const Unlocked unlocked;
  search.remember(x, x_after, g, g_after, s, s_after);
}

}  // namespace

void register_lbfgs(py::module_& module) {
  py::class_<LbfgsDirection>(module, "LbfgsDirection")
      .def_readonly("vector", &LbfgsDirection::vector)
      .def_readonly("slope", &LbfgsDirection::slope)
      .def_readonly("squared_norm", &LbfgsDirection::squared_norm);
  py::class_<Lbfgs>(module, "Lbfgs")
      .def(py::init<index_t, index_t>(), "size"_a, "memory"_a)
      .def_property_readonly("pairs", &Lbfgs::pairs)
      .def_property_readonly("gamma", &Lbfgs::gamma)
      .def("direction", &direction, "gradient"_a, "solved"_a)
      .def("remember", &remember)
      .def("forget", &Lbfgs::forget);
}

}  // namespace eigenfeat::bindings
