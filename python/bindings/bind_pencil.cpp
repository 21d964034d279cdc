// Batches of generalized symmetric eigenproblems for Python.
#include "eigenfeat/pencil.hpp"

#include "eigenfeat/vector.hpp"
#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

Solver parse_solver(const std::string& name) {
  if (name == "auto") return Solver::automatic;
  if (name == "full") return Solver::full;
  if (name == "subset") return Solver::subset;
  if (name == "tridiagonal") return Solver::tridiagonal;
  require(name == "krylov", "solver", "auto, full, subset, tridiagonal or krylov", name);
  return Solver::krylov;
}

const char* solver_name(Solver solver) {
  switch (solver) {
    case Solver::full:
      return "full";
    case Solver::subset:
      return "subset";
    case Solver::tridiagonal:
      return "tridiagonal";
    case Solver::krylov:
      return "krylov";
    case Solver::automatic:
      break;
  }
  return "auto";
}

PencilOptions make_options(index_t n_vectors, double threshold, const std::string& solver,
                           int n_threads) {
  require(n_vectors >= 0, "n_vectors", "at least 0", std::to_string(n_vectors));
  PencilOptions all;
  all.n_vectors = n_vectors;
  all.threshold = threshold;
  all.solver = parse_solver(solver);
  all.n_threads = n_threads;
  return all;
}

// Result of solve_pencils, with arrays of float or double.
struct Solution {
  py::object eigenvalues, vectors, residuals, found, iterations, solver, status;
};

template <class T>
struct SolutionArrays {
  SolutionArrays(index_t n, index_t m, index_t d)
      : eigenvalues(allocate<T>({n, m})),
        vectors(allocate<T>({n, m, d})),
        residuals(allocate<T>({n, m})),
        found(allocate<index_t>({n})),
        iterations(allocate<index_t>({n})),
        solver(allocate<int>({n})),
        status(allocate<int>({n})) {}

  PencilSolution<T> views() {
    PencilSolution<T> all;
    all.eigenvalues = flat_output(eigenvalues);
    all.vectors = flat_output(vectors);
    all.residuals = flat_output(residuals);
    all.found = flat_output(found);
    all.iterations = flat_output(iterations);
    all.solver = flat_output(solver);
    all.status = flat_output(status);
    return all;
  }

  Solution release() {
    Solution all;
    all.eigenvalues = std::move(eigenvalues);
    all.vectors = std::move(vectors);
    all.residuals = std::move(residuals);
    all.found = std::move(found);
    all.iterations = std::move(iterations);
    all.solver = std::move(solver);
    all.status = std::move(status);
    return all;
  }

  Array<T> eigenvalues, vectors, residuals;
  Array<index_t> found, iterations;
  Array<int> solver, status;
};

template <class T>
Solution solve(const Vector<Array<T>>& numerators, const Vector<Array<T>>& denominators,
               const Array<T>& shifts, const Array<index_t>& items, const PencilOptions& options) {
  require(!numerators.empty(), "numerators", "at least one matrix", "none");
  require(!denominators.empty(), "denominators", "at least one matrix", "none");
  const T* first_shift = aligned_data(shifts, "shifts");
  const PencilProblem<T> problem{matrix_views(numerators, "numerators"),
                                 matrix_views(denominators, "denominators"),
                                 {first_shift, first_shift + shifts.size()},
                                 index_pairs(items, "items")};
  SolutionArrays<T> solution(items.shape(0), options.n_vectors, problem.numerators.front().rows);
  const auto views = solution.views();
  {
    const Unlocked unlocked;
    solve_pencils<T>(problem, options, views);
  }
  return solution.release();
}

template <class T>
void register_solve(py::module_& module) {
  module.def("solve_pencils", &solve<T>, py::arg("numerators").noconvert(),
             py::arg("denominators").noconvert(), py::arg("shifts").noconvert(),
             py::arg("items").noconvert(), "options"_a);
  module.def(
      "is_positive_definite",
      [](const Array<T>& matrix, const Array<T>& shifts, int n_threads) {
        const auto view = matrix_view(matrix, "matrix");
        const auto added = vector_view(shifts, "shifts");
        const Unlocked unlocked;
        return is_positive_definite<T>(view, added, n_threads);
      },
      py::arg("matrix").noconvert(), py::arg("shifts").noconvert(), "n_threads"_a);
}

}  // namespace

void register_pencil(py::module_& module) {
  py::class_<Solution>(module, "PencilSolution")
      .def_readonly("eigenvalues", &Solution::eigenvalues)
      .def_readonly("vectors", &Solution::vectors)
      .def_readonly("residuals", &Solution::residuals)
      .def_readonly("found", &Solution::found)
      .def_readonly("iterations", &Solution::iterations)
      .def_readonly("solver", &Solution::solver)
      .def_readonly("status", &Solution::status);
  py::class_<PencilOptions>(module, "PencilOptions")
      .def(py::init(&make_options), "n_vectors"_a, "threshold"_a, "solver"_a, "n_threads"_a)
      .def_readonly("n_vectors", &PencilOptions::n_vectors);
  register_solve<float>(module);
  register_solve<double>(module);
  module.def(
      "choose_solver",
      [](index_t d, index_t n_vectors, double items_per_denominator) {
        return solver_name(choose_solver(d, n_vectors, items_per_denominator));
      },
      "d"_a, "n_vectors"_a, "items_per_denominator"_a);
  module.def(
      "pencil_bytes",
      [](index_t d, index_t n_items, index_t n_denominators, const PencilOptions& options) {
        return pencil_bytes<double>(d, n_items, n_denominators, options);
      },
      "d"_a, "n_items"_a, "n_denominators"_a, "options"_a);
}

}  // namespace eigenfeat::bindings
