// Feature rows, the fused logit and its metric for Python.
#include "eigenfeat/logit.hpp"

#include <cstdint>
#include <memory>

#include "eigenfeat/vector.hpp"
#include "expansion_arguments.hpp"
#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;
using Weights = std::optional<Array<double>>;

// FeatureRows with the arrays that they read, kept alive.
template <class T>
struct HeldRows {
  std::optional<Array<T>> dense, data, projections, directions, offset;
  std::optional<Array<index_t>> indices, indptr;
  FeatureRows<T> rows;
};

// A metric with the rows that it reads, if any. py::keep_alive cannot hold them: pybind11 3.1 applies
// it also after a call whose arguments do not match, when there is no result.
struct HeldMetric {
  std::shared_ptr<const void> rows;
  std::unique_ptr<Metric> metric;
};

template <class T>
std::shared_ptr<HeldRows<T>> hold_features(
    std::optional<Array<T>> dense, std::optional<Array<T>> data,
    std::optional<Array<index_t>> indices, std::optional<Array<index_t>> indptr, index_t n_columns,
    std::optional<Array<T>> projections, std::optional<Array<T>> directions,
    std::optional<Array<T>> offset, const std::optional<std::string>& wave,
    const Vector<int>& powers, bool include_input, bool constant) {
  auto held = std::make_shared<HeldRows<T>>(HeldRows<T>{std::move(dense),
                                                        std::move(data),
                                                        std::move(projections),
                                                        std::move(directions),
                                                        std::move(offset),
                                                        std::move(indices),
                                                        std::move(indptr),
                                                        {}});
  FeatureRows<T>& rows = held->rows;
  if (held->dense) rows.dense = matrix_view(*held->dense, "X");
  if (held->data) {
    require(held->indices.has_value(), "indices", "an array beside data", "None");
    require(held->indptr.has_value(), "indptr", "an array beside data", "None");
    rows.sparse = csr_view(*held->data, *held->indices, *held->indptr, n_columns);
  }
  if (held->projections) rows.projections = matrix_view(*held->projections, "projections");
  if (held->directions) rows.directions = matrix_view(*held->directions, "directions");
  rows.offset = vector_view(held->offset, "offset");
  rows.expanded = wave.has_value();
  if (wave) rows.expansion = Expansion{parse_wave(*wave), powers, include_input};
  rows.constant = constant;
  rows.check();
  return held;
}

template <class T>
Array<T> scores(const HeldRows<T>& held, const Array<T>& coefficients, int n_threads) {
  const auto w = matrix_view(coefficients, "coefficients");
  auto out = allocate<T>({held.rows.rows(), w.cols});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    feature_scores<T>(held.rows, w, view, n_threads);
  }
  return out;
}

template <class T>
Array<T> scores_of_classes(const HeldRows<T>& held, const Array<double>& weights,
                           const Array<double>& constants, int n_threads) {
  const auto w = matrix_view(weights, "weights");
  const auto b = vector_view(constants, "constants");
  auto out = allocate<T>({held.rows.rows(), w.rows});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    class_scores<T>(held.rows, w, b, view, n_threads);
  }
  return out;
}

template <class T>
Array<double> products(const HeldRows<T>& held, const Array<T>& residuals, int n_threads) {
  const auto r = matrix_view(residuals, "residuals");
  auto out = allocate<double>({held.rows.cols(), r.cols});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    feature_products<T>(held.rows, r, view, n_threads);
  }
  return out;
}

struct FeatureSums {
  Array<double> sums, squares;
};

template <class T>
FeatureSums sums(const HeldRows<T>& held, const Weights& weights, int n_threads) {
  const auto w = vector_view(weights, "weights");
  FeatureSums out{allocate<double>({held.rows.cols()}), allocate<double>({held.rows.cols()})};
  const auto first = flat_output(out.sums), second = flat_output(out.squares);
  {
    const Unlocked unlocked;
    feature_sums<T>(held.rows, w, first, second, n_threads);
  }
  return out;
}

struct LogitGradient {
  double loss, energy;
  Array<double> gradient;
};

template <class T>
LogitGradient gradient(const HeldRows<T>& held, const Array<std::int32_t>& labels,
                       const Weights& weights, double energy_weight,
                       const Array<double>& coefficients, int n_threads) {
  const auto codes = vector_view(labels, "labels");
  const auto row_weights = vector_view(weights, "weights");
  const auto w = matrix_view(coefficients, "coefficients");
  auto out = allocate<double>({w.rows, w.cols});
  const auto view = matrix_output(out);
  LogitTerms terms;
  {
    const Unlocked unlocked;
    terms = logit_gradient<T>(held.rows, codes, row_weights, energy_weight, w, view, n_threads);
  }
  return {terms.loss, terms.energy, std::move(out)};
}

template <class T>
HeldMetric metric(const std::shared_ptr<HeldRows<T>>& held, const Weights& weights,
                  const Array<double>& scale, const Array<double>& diagonal, double factor,
                  bool dual, bool coarse, int n_threads) {
  const auto row_weights = vector_view(weights, "weights");
  const auto scales = vector_view(scale, "scale"), diagonals = vector_view(diagonal, "diagonal");
  const Unlocked unlocked;
  const auto products = coarse ? Metric::Products::coarse : Metric::Products::single;
  if (!dual) {
    return {nullptr, Metric::make<T>(held->rows, row_weights, scales, diagonals, factor, products,
                                     n_threads)};
  }
  return {held, Metric::make_dual<T>(held->rows, row_weights, scales, diagonals, factor, products,
                                     n_threads)};
}

template <class T>
double residual(const HeldRows<T>& held, const Weights& weights, const Array<double>& scale,
                double ridge, int n_threads) {
  const auto row_weights = vector_view(weights, "weights");
  const auto scales = vector_view(scale, "scale");
  const Unlocked unlocked;
  return mean_residual<T>(held.rows, row_weights, scales, ridge, n_threads);
}

template <class T>
Array<double> gram(const HeldRows<T>& held, const Weights& weights, const Array<double>& scale,
                   bool coarse, int n_threads) {
  const auto row_weights = vector_view(weights, "weights");
  const auto scales = vector_view(scale, "scale");
  const index_t p = held.rows.cols();
  auto out = allocate<double>({p * (p + 1) / 2});
  const auto view = flat_output(out);
  {
    const Unlocked unlocked;
    const auto products = coarse ? Metric::Products::coarse : Metric::Products::single;
    scaled_gram<T>(held.rows, row_weights, scales, products, view, n_threads);
  }
  return out;
}

template <class T>
Array<double> kernel(const HeldRows<T>& held, const Array<double>& scale, bool coarse,
                     int n_threads) {
  const auto scales = vector_view(scale, "scale");
  auto out = allocate<double>({held.rows.rows(), held.rows.rows()});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    feature_kernel<T>(held.rows, scales, coarse, view, n_threads);
  }
  return out;
}

Array<double> ridges_of_kernel(const Array<double>& kernel, const Weights& weights,
                               const Array<double>& targets, const Array<double>& ridges,
                               int n_threads) {
  const auto entries = matrix_view(kernel, "kernel"), y = matrix_view(targets, "targets");
  const auto row_weights = vector_view(weights, "weights"), each = vector_view(ridges, "ridges");
  auto out = allocate<double>({each.size, entries.rows, y.cols});
  const auto view = row_major(out.mutable_data(), each.size * entries.rows, y.cols);
  {
    const Unlocked unlocked;
    kernel_ridge(entries, row_weights, y, each, view, n_threads);
  }
  return out;
}

HeldMetric from_gram(const Array<double>& gram, const Array<double>& scale,
                     const Array<double>& diagonal, double factor, int n_threads) {
  const auto sums = vector_view(gram, "gram");
  const auto scales = vector_view(scale, "scale"), diagonals = vector_view(diagonal, "diagonal");
  const Unlocked unlocked;
  return {nullptr, Metric::from_gram(sums, scales, diagonals, factor, n_threads)};
}

Array<double> solve(const HeldMetric& held, const Array<double>& b, int n_threads) {
  const auto right = matrix_view(b, "b");
  auto out = allocate<double>({right.rows, right.cols});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    held.metric->solve(right, view, n_threads);
  }
  return out;
}

template <class T>
void register_rows(py::module_& module, const char* name) {
  const auto optional = [](const char* argument) {
    return py::arg(argument).noconvert().none(true) = py::none();
  };
  py::class_<HeldRows<T>, std::shared_ptr<HeldRows<T>>>(module, name)
      .def(py::init(&hold_features<T>), py::kw_only(), optional("X"), optional("data"),
           optional("indices"), optional("indptr"), "n_columns"_a = 0, optional("projections"),
           optional("directions"), optional("offset"), "wave"_a = py::none(),
           "powers"_a = Vector<int>{}, "include_input"_a = false, "constant"_a = false)
      .def_property_readonly("n_rows", [](const HeldRows<T>& held) { return held.rows.rows(); })
      .def_property_readonly("n_columns", [](const HeldRows<T>& held) { return held.rows.cols(); })
      .def("scores", &scores<T>, py::arg("coefficients").noconvert(), "n_threads"_a)
      .def("class_scores", &scores_of_classes<T>, py::arg("weights").noconvert(),
           py::arg("constants").noconvert(), "n_threads"_a)
      .def("products", &products<T>, py::arg("residuals").noconvert(), "n_threads"_a)
      .def("sums", &sums<T>, py::arg("weights").noconvert().none(true), "n_threads"_a)
      .def("gradient", &gradient<T>, py::arg("labels").noconvert(),
           py::arg("weights").noconvert().none(true), "energy_weight"_a,
           py::arg("coefficients").noconvert(), "n_threads"_a)
      .def("metric", &metric<T>, py::arg("weights").noconvert().none(true),
           py::arg("scale").noconvert(), py::arg("diagonal").noconvert(), "factor"_a, "dual"_a,
           "coarse"_a, "n_threads"_a)
      .def("residual", &residual<T>, py::arg("weights").noconvert().none(true),
           py::arg("scale").noconvert(), "ridge"_a, "n_threads"_a)
      .def("gram", &gram<T>, py::arg("weights").noconvert().none(true),
           py::arg("scale").noconvert(), "coarse"_a, "n_threads"_a)
      .def("kernel", &kernel<T>, py::arg("scale").noconvert(), "coarse"_a, "n_threads"_a);
}

}  // namespace

void register_logit(py::module_& module) {
  py::class_<FeatureSums>(module, "FeatureSums")
      .def_readonly("sums", &FeatureSums::sums)
      .def_readonly("squares", &FeatureSums::squares);
  py::class_<LogitGradient>(module, "LogitGradient")
      .def_readonly("loss", &LogitGradient::loss)
      .def_readonly("energy", &LogitGradient::energy)
      .def_readonly("gradient", &LogitGradient::gradient);
  py::class_<HeldMetric>(module, "Metric")
      .def_property_readonly("positive", [](const HeldMetric& m) { return m.metric->positive(); })
      .def_property_readonly("order", [](const HeldMetric& m) { return m.metric->order(); })
      .def_static("from_gram", &from_gram, py::arg("gram").noconvert(),
                  py::arg("scale").noconvert(), py::arg("diagonal").noconvert(), "factor"_a,
                  "n_threads"_a)
      .def("solve", &solve, py::arg("b").noconvert(), "n_threads"_a);
  module.def("kernel_ridge", &ridges_of_kernel, py::arg("kernel").noconvert(),
             py::arg("weights").noconvert().none(true), py::arg("targets").noconvert(),
             py::arg("ridges").noconvert(), "n_threads"_a);
  register_rows<float>(module, "FeatureRows32");
  register_rows<double>(module, "FeatureRows64");
}

}  // namespace eigenfeat::bindings
