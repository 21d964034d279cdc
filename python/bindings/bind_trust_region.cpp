// Minima and certified signs of quadratics over balls for Python.
#include "eigenfeat/trust_region.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

// A: (m, d, d) dense matrices or (m, d) diagonals, m = 1 or n.
BallProblem problem_of(const Array<double>& a, const Array<double>& g,
                       const Array<double>& radius) {
  BallProblem problem;
  problem.dense = a.ndim() == 3;
  problem.curvatures = problem.dense ? stacked_rows(a, "A") : matrix_view(a, "A");
  problem.slopes = matrix_view(g, "g");
  problem.radii = vector_view(radius, "radius");
  return problem;
}

py::tuple minimise_in_ball(const Array<double>& a, const Array<double>& g,
                           const Array<double>& radius, int n_threads) {
  const BallProblem problem = problem_of(a, g, radius);
  const index_t n = problem.slopes.rows, d = problem.slopes.cols;
  auto values = allocate<double>({n}), points = allocate<double>({n, d});
  auto multipliers = allocate<double>({n}), gaps = allocate<double>({n});
  auto residuals = allocate<double>({n});
  auto hard = allocate<int>({n}), iterations = allocate<int>({n}), status = allocate<int>({n});
  const BallMinima minima{flat_output(values),     matrix_output(points),  flat_output(multipliers),
                          flat_output(gaps),       flat_output(residuals), flat_output(hard),
                          flat_output(iterations), flat_output(status)};
  {
    const Unlocked unlocked;
    minimise_over_ball(problem, minima, n_threads);
  }
  return py::make_tuple(values, points, multipliers, gaps, residuals, hard, iterations, status);
}

py::tuple certified(const Array<double>& a, const Array<double>& g, const Array<double>& constant,
                    const Array<double>& radius, int n_threads) {
  const BallProblem problem = problem_of(a, g, radius);
  const auto constants = vector_view(constant, "constant");
  const index_t n = problem.slopes.rows;
  auto verdicts = allocate<int>({n}), passes = allocate<int>({n});
  auto lower = allocate<double>({n}), upper = allocate<double>({n});
  const Certificates certificates{flat_output(verdicts), flat_output(lower), flat_output(upper),
                                  flat_output(passes)};
  {
    const Unlocked unlocked;
    certify_over_ball(problem, constants, certificates, n_threads);
  }
  return py::make_tuple(verdicts, lower, upper, passes);
}

// forms (p, d, d), widths (q, d), groups (m, 2), begins (m + 1,), slopes (n, d), constants and radii
// (n, t), limits (n,).
Array<int> levels(const Array<double>& forms, const Array<double>& widths,
                  const Array<index_t>& groups, const Array<index_t>& begins,
                  const Array<double>& slopes, const Array<double>& constants,
                  const Array<double>& radii, const Array<index_t>& limits, int n_threads) {
  SharedQuadratics problem;
  problem.forms = stacked_rows(forms, "forms");
  problem.widths = matrix_view(widths, "widths");
  problem.groups = matrix_view(groups, "groups");
  problem.begins = vector_view(begins, "begins");
  problem.slopes = matrix_view(slopes, "slopes");
  problem.constants = matrix_view(constants, "constants");
  problem.radii = matrix_view(radii, "radii");
  problem.limits = vector_view(limits, "limits");
  auto proved = allocate<int>({problem.slopes.rows});
  const auto proved_view = flat_output(proved);
  {
    const Unlocked unlocked;
    proved_levels(problem, proved_view, n_threads);
  }
  return proved;
}

}  // namespace

void register_trust_region(py::module_& module) {
  module.def("minimise_over_ball", &minimise_in_ball, py::arg("A").noconvert(),
             py::arg("g").noconvert(), py::arg("radius").noconvert(), "n_threads"_a);
  module.def("certify_over_ball", &certified, py::arg("A").noconvert(), py::arg("g").noconvert(),
             py::arg("constant").noconvert(), py::arg("radius").noconvert(), "n_threads"_a);
  module.def("proved_levels", &levels, py::arg("forms").noconvert(), py::arg("widths").noconvert(),
             py::arg("groups").noconvert(), py::arg("begins").noconvert(),
             py::arg("slopes").noconvert(), py::arg("constants").noconvert(),
             py::arg("radii").noconvert(), py::arg("limits").noconvert(), "n_threads"_a);
}

}  // namespace eigenfeat::bindings
