// ClassMoments for Python.
#include "eigenfeat/moments.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;
using Labels = Array<std::int32_t>;
using Weights = std::optional<Array<double>>;

template <class T>
void update_dense(ClassMoments& moments, const Strided<T>& X, const Labels& labels,
                  const Weights& weights, int n_threads) {
  const auto rows = rows_view(X, "X");
  const auto codes = vector_view(labels, "labels");
  const auto row_weights = vector_view(weights, "weights");
  const Unlocked unlocked;
  moments.update<T>(rows, codes, row_weights, n_threads);
}

void update_bytes(ClassMoments& moments, const Array<std::uint8_t>& X, const Labels& labels,
                  int n_threads) {
  const auto rows = matrix_view(X, "X");
  const auto codes = vector_view(labels, "labels");
  const Unlocked unlocked;
  moments.update(rows, codes, n_threads);
}

template <class T>
void update_csr(ClassMoments& moments, const Array<T>& data, const Array<index_t>& indices,
                const Array<index_t>& indptr, index_t n_columns, const Labels& labels,
                const Weights& weights, int n_threads) {
  const auto rows = csr_view(data, indices, indptr, n_columns);
  const auto codes = vector_view(labels, "labels");
  const auto row_weights = vector_view(weights, "weights");
  const Unlocked unlocked;
  moments.update<T>(rows, codes, row_weights, n_threads);
}

void merge(ClassMoments& moments, const ClassMoments& other, const Labels& class_map,
           int n_threads) {
  const auto map = vector_view(class_map, "class_map");
  const Unlocked unlocked;
  moments.merge(other, map, n_threads);
}

using ReadMatrix = void (ClassMoments::*)(index_t, MatrixView<double>) const;

template <ReadMatrix read>
Array<double> read_matrix(const ClassMoments& moments, index_t c) {
  auto out = allocate<double>({moments.n_features(), moments.n_features()});
  const auto view = matrix_output(out);
  {
    const Unlocked unlocked;
    (moments.*read)(c, view);
  }
  return out;
}

Array<double> packed_scatter(const ClassMoments& moments, index_t c) {
  const index_t d = moments.n_features();
  auto out = allocate<double>({d * (d + 1) / 2});
  const auto view = flat_output(out);
  {
    const Unlocked unlocked;
    moments.packed_scatter(c, view);
  }
  return out;
}

void restore(ClassMoments& moments, index_t c, double weight, const Array<double>& mean_high,
             const Array<double>& mean_low, const Array<double>& packed) {
  const auto high = vector_view(mean_high, "mean_high");
  const auto low = vector_view(mean_low, "mean_low");
  const auto scatter = vector_view(packed, "packed");
  const Unlocked unlocked;
  moments.restore(c, weight, high, low, scatter);
}

template <class T>
void register_updates(py::class_<ClassMoments>& cls) {
  cls.def("update_dense", &update_dense<T>, py::arg("X").noconvert(), py::arg("labels").noconvert(),
          py::arg("weights").noconvert().none(true), "n_threads"_a);
  cls.def("update_csr", &update_csr<T>, py::arg("data").noconvert(), py::arg("indices").noconvert(),
          py::arg("indptr").noconvert(), "n_columns"_a, py::arg("labels").noconvert(),
          py::arg("weights").noconvert().none(true), "n_threads"_a);
}

}  // namespace

void register_moments(py::module_& module) {
  py::class_<ClassMoments> cls(module, "ClassMoments");
  cls.def(py::init<index_t, index_t>(), "n_classes"_a, "n_features"_a);
  cls.def_property_readonly("n_classes", &ClassMoments::n_classes);
  cls.def_property_readonly("n_features", &ClassMoments::n_features);
  cls.def("grow", &ClassMoments::grow, "n_classes"_a);
  register_updates<float>(cls);
  register_updates<double>(cls);
  cls.def("update_bytes", &update_bytes, py::arg("X").noconvert(), py::arg("labels").noconvert(),
          "n_threads"_a);
  cls.def("merge", &merge, "other"_a, py::arg("class_map").noconvert(), "n_threads"_a);
  cls.def("weight", &ClassMoments::weight, "c"_a);
  cls.def(
      "mean_high", [](const ClassMoments& m, index_t c) { return array_copy(m.mean_high(c)); },
      "c"_a);
  cls.def(
      "mean_low", [](const ClassMoments& m, index_t c) { return array_copy(m.mean_low(c)); },
      "c"_a);
  cls.def("second_moment", &read_matrix<&ClassMoments::second_moment>, "c"_a);
  cls.def("covariance", &read_matrix<&ClassMoments::covariance>, "c"_a);
  cls.def("packed_scatter", &packed_scatter, "c"_a);
  cls.def("restore", &restore, "c"_a, "weight"_a, py::arg("mean_high").noconvert(),
          py::arg("mean_low").noconvert(), py::arg("packed").noconvert());
  cls.def(
      "copy", [](const ClassMoments& m) { return ClassMoments(m); }, py::call_guard<Unlocked>());
  cls.def("__eq__", &ClassMoments::operator==, "other"_a, py::is_operator());
  cls.attr("__hash__") = py::none();
}

}  // namespace eigenfeat::bindings
