// Dual solvers of the multiclass SVM for Python.
#include "eigenfeat/crammer_singer.hpp"

#include <cstdint>
#include <limits>
#include <memory>

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

DualSolver parse_dual_solver(const std::string& name) {
  if (name == "sequential") return DualSolver::sequential;
  require(name == "frank_wolfe", "solver", "sequential or frank_wolfe", name);
  return DualSolver::frank_wolfe;
}

// The solver with the arrays that it reads, kept alive.
template <class T>
struct HeldSolver {
  std::optional<Array<T>> dense, data;
  std::optional<Array<index_t>> indices, indptr;
  Array<std::int32_t> labels;
  Array<double> costs;
  std::unique_ptr<CrammerSinger<T>> solver;
};

template <class T>
std::unique_ptr<HeldSolver<T>> hold_samples(
    std::optional<Array<T>> dense, std::optional<Array<T>> data,
    std::optional<Array<index_t>> indices, std::optional<Array<index_t>> indptr, index_t n_columns,
    Array<std::int32_t> labels, Array<double> costs, index_t n_classes, double margin,
    double constant, const std::string& solver, index_t batch, std::uint64_t seed, int n_threads) {
  require(n_classes <= std::numeric_limits<std::int32_t>::max(), "n_classes",
          "a number below 2^31, as labels have 32 bits", std::to_string(n_classes));
  auto held = std::make_unique<HeldSolver<T>>(
      HeldSolver<T>{std::move(dense), std::move(data), std::move(indices), std::move(indptr),
                    std::move(labels), std::move(costs), nullptr});
  const SvmProblem problem{vector_view(held->labels, "labels"), vector_view(held->costs, "costs"),
                           n_classes, margin, constant};
  const SvmOptions options{parse_dual_solver(solver), batch, seed};
  if (held->dense) {
    const auto rows = matrix_view(*held->dense, "X");
    const Unlocked unlocked;
    held->solver = std::make_unique<CrammerSinger<T>>(rows, problem, options, n_threads);
  } else {
    require(held->data && held->indices && held->indptr, "X",
            "an array, or data, indices and indptr instead", "None");
    const auto rows = csr_view(*held->data, *held->indices, *held->indptr, n_columns);
    const Unlocked unlocked;
    held->solver = std::make_unique<CrammerSinger<T>>(rows, problem, options, n_threads);
  }
  return held;
}

template <class T>
void start(HeldSolver<T>& held, const Array<double>& duals, int n_threads) {
  const auto view = matrix_view(duals, "duals");
  const Unlocked unlocked;
  held.solver->start(view, n_threads);
}

template <class T>
Array<double> weights(const HeldSolver<T>& held, index_t n_classes) {
  auto out = allocate<double>({n_classes, held.solver->features()});
  const auto view = matrix_output(out);
  const Unlocked unlocked;
  held.solver->weights(view);
  return out;
}

template <class T>
Array<double> duals(const HeldSolver<T>& held, index_t n_classes) {
  auto out = allocate<double>({held.labels.shape(0), n_classes});
  const auto view = matrix_output(out);
  const Unlocked unlocked;
  held.solver->duals(view);
  return out;
}

template <class T>
void register_solver(py::module_& module, const char* name) {
  using Held = HeldSolver<T>;
  const auto optional = [](const char* argument) {
    return py::arg(argument).noconvert().none(true) = py::none();
  };
  py::class_<Held>(module, name)
      .def(py::init(&hold_samples<T>), py::kw_only(), optional("X"), optional("data"),
           optional("indices"), optional("indptr"), "n_columns"_a = 0,
           py::arg("labels").noconvert(), py::arg("costs").noconvert(), "n_classes"_a, "margin"_a,
           "constant"_a, "solver"_a, "batch"_a, "seed"_a, "n_threads"_a)
      .def("start", &start<T>, py::arg("duals").noconvert(), "n_threads"_a)
      .def(
          "run",
          [](Held& held, index_t epochs, double tolerance, int n_threads) {
            return held.solver->run(epochs, tolerance, n_threads);
          },
          "epochs"_a, "tolerance"_a, "n_threads"_a, py::call_guard<Unlocked>())
      .def_property_readonly("primal", [](const Held& held) { return held.solver->primal(); })
      .def_property_readonly("dual", [](const Held& held) { return held.solver->dual(); })
      .def_property_readonly("gap", [](const Held& held) { return held.solver->gap(); })
      .def_property_readonly("support", [](const Held& held) { return held.solver->support(); })
      .def("weights", &weights<T>, "n_classes"_a)
      .def("duals", &duals<T>, "n_classes"_a);
}

}  // namespace

void register_crammer_singer(py::module_& module) {
  register_solver<float>(module, "CrammerSinger32");
  register_solver<double>(module, "CrammerSinger64");
}

}  // namespace eigenfeat::bindings
