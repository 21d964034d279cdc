// Radii of sets over which one class dominates, for Python.
#include "eigenfeat/dominance.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;
using OptionalArray = std::optional<Array<double>>;

SetShape parse_shape(const std::string& name) {
  require(name == "ball" || name == "box", "shape", "ball or box", name);
  return name == "box" ? SetShape::box : SetShape::ball;
}

// The rows of a view; a single row becomes n equal rows.
MatrixView<const double> broadcast(MatrixView<const double> view, index_t n) {
  if (view.rows == 1 && n != 1) {
    view.rows = n;
    view.row_stride = 0;
  }
  return view;
}

DominanceProblem problem_of(const Array<double>& points, const Array<double>& widths,
                            const Array<double>& radii, const Array<double>& offsets,
                            const OptionalArray& slopes, const OptionalArray& precisions,
                            const OptionalArray& centres, const std::string& shape) {
  DominanceProblem problem;
  problem.points = matrix_view(points, "points");
  const index_t n = problem.points.rows;
  problem.widths = broadcast(matrix_view(widths, "widths"), n);
  problem.radii = vector_view(radii, "radii");
  problem.offsets = matrix_view(offsets, "offsets");
  if (slopes) problem.slopes = matrix_view(*slopes, "slopes");
  if (precisions) problem.precisions = broadcast(flattened_rows(*precisions, "precisions"), n);
  if (centres) problem.centres = broadcast(flattened_rows(*centres, "centres"), n);
  problem.shape = parse_shape(shape);
  return problem;
}

Array<double> radii_of(const Array<double>& points, const Array<double>& widths,
                       const Array<double>& radii, const Array<double>& offsets,
                       const OptionalArray& slopes, const OptionalArray& precisions,
                       const OptionalArray& centres, const std::string& shape, int n_threads) {
  const DominanceProblem problem =
      problem_of(points, widths, radii, offsets, slopes, precisions, centres, shape);
  auto largest = allocate<double>({problem.points.rows});
  const auto largest_view = flat_output(largest);
  {
    const Unlocked unlocked;
    dominance_radii(problem, largest_view, n_threads);
  }
  return largest;
}

}  // namespace

void register_dominance(py::module_& module) {
  const auto optional = [](const char* name) { return py::arg(name).noconvert().none(true); };
  module.def("dominance_radii", &radii_of, py::arg("points").noconvert(),
             py::arg("widths").noconvert(), py::arg("radii").noconvert(),
             py::arg("offsets").noconvert(), optional("slopes"), optional("precisions"),
             optional("centres"), "shape"_a, "n_threads"_a);
}

}  // namespace eigenfeat::bindings
