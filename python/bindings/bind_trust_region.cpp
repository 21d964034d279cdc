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

// Arrays of n items.
struct BallMinimaArrays {
  Array<double> values, points, multipliers, gaps, residuals;
  Array<int> hard, iterations, status;
};

struct CertificateArrays {
  Array<int> verdicts, passes;
  Array<double> lower, upper;
};

BallMinimaArrays minimise_in_ball(const Array<double>& a, const Array<double>& g,
                                  const Array<double>& radius, int n_threads) {
  const BallProblem problem = problem_of(a, g, radius);
  const index_t n = problem.slopes.rows, d = problem.slopes.cols;
  BallMinimaArrays out{allocate<double>({n}), allocate<double>({n, d}), allocate<double>({n}),
                       allocate<double>({n}), allocate<double>({n}),    allocate<int>({n}),
                       allocate<int>({n}),    allocate<int>({n})};
  const BallMinima minima{flat_output(out.values),      matrix_output(out.points),
                          flat_output(out.multipliers), flat_output(out.gaps),
                          flat_output(out.residuals),   flat_output(out.hard),
                          flat_output(out.iterations),  flat_output(out.status)};
  {
    const Unlocked unlocked;
    minimise_over_ball(problem, minima, n_threads);
  }
  return out;
}

CertificateArrays certify(const Array<double>& a, const Array<double>& g,
                          const Array<double>& constant, const Array<double>& radius,
                          int n_threads) {
  const BallProblem problem = problem_of(a, g, radius);
  const auto constants = vector_view(constant, "constant");
  const index_t n = problem.slopes.rows;
  CertificateArrays out{allocate<int>({n}), allocate<int>({n}), allocate<double>({n}),
                        allocate<double>({n})};
  const Certificates certificates{flat_output(out.verdicts), flat_output(out.lower),
                                  flat_output(out.upper), flat_output(out.passes)};
  {
    const Unlocked unlocked;
    certify_over_ball(problem, constants, certificates, n_threads);
  }
  return out;
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
  py::class_<BallMinimaArrays>(module, "BallMinima")
      .def_readonly("values", &BallMinimaArrays::values)
      .def_readonly("points", &BallMinimaArrays::points)
      .def_readonly("multipliers", &BallMinimaArrays::multipliers)
      .def_readonly("gaps", &BallMinimaArrays::gaps)
      .def_readonly("residuals", &BallMinimaArrays::residuals)
      .def_readonly("hard", &BallMinimaArrays::hard)
      .def_readonly("iterations", &BallMinimaArrays::iterations)
      .def_readonly("status", &BallMinimaArrays::status);
  py::class_<CertificateArrays>(module, "Certificates")
      .def_readonly("verdicts", &CertificateArrays::verdicts)
      .def_readonly("lower", &CertificateArrays::lower)
      .def_readonly("upper", &CertificateArrays::upper)
      .def_readonly("passes", &CertificateArrays::passes);
  module.def("minimise_over_ball", &minimise_in_ball, py::arg("A").noconvert(),
             py::arg("g").noconvert(), py::arg("radius").noconvert(), "n_threads"_a);
  module.def("certify_over_ball", &certify, py::arg("A").noconvert(), py::arg("g").noconvert(),
             py::arg("constant").noconvert(), py::arg("radius").noconvert(), "n_threads"_a);
  module.def("proved_levels", &levels, py::arg("forms").noconvert(), py::arg("widths").noconvert(),
             py::arg("groups").noconvert(), py::arg("begins").noconvert(),
             py::arg("slopes").noconvert(), py::arg("constants").noconvert(),
             py::arg("radii").noconvert(), py::arg("limits").noconvert(), "n_threads"_a);
}

}  // namespace eigenfeat::bindings
