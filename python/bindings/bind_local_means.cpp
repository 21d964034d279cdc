// Class-wise neighbours and LDG's scatters for Python.
#include "eigenfeat/local_means.hpp"

#include "numpy_views.hpp"
#include "registrars.hpp"
#include "unlocked.hpp"

namespace eigenfeat::bindings {
namespace {

using py::literals::operator""_a;

ScatterMethod parse_method(const std::string& name) {
  if (name == "auto") return ScatterMethod::automatic;
  if (name == "rows") return ScatterMethod::rows;
  require(name == "graph", "method", "auto, rows or graph", name);
  return ScatterMethod::graph;
}

template <class T>
Array<index_t> neighbours(const Array<T>& X, const Array<std::int32_t>& codes, index_t n_classes,
                          index_t n_neighbors, const std::optional<Array<T>>& queries,
                          const std::optional<Array<std::int32_t>>& groups, int n_threads) {
  LocalRows<T> rows;
  rows.references = matrix_view(X, "X");
  rows.codes = vector_view(codes, "codes");
  rows.n_classes = n_classes;
  rows.same = !queries;
  rows.queries = queries ? matrix_view(*queries, "queries") : rows.references;
  rows.groups = vector_view(groups, "groups");
  require(n_classes >= 1, "n_classes", "at least 1", std::to_string(n_classes));
  require(n_neighbors >= 1, "n_neighbors", "at least 1", std::to_string(n_neighbors));
  auto out = allocate<index_t>({rows.queries.rows, n_classes, n_neighbors});
  const auto view = flat_output(out);
  {
    const Unlocked unlocked;
    find_local_neighbours<T>(rows, n_neighbors, view, n_threads);
  }
  return out;
}

template <class T>
LocalPairs<T> pairs_of(const Array<T>& X, const std::optional<Array<T>>& queries,
                       const Array<index_t>& neighbours) {
  require_dimensions(neighbours, 3, "neighbours");
  LocalPairs<T> pairs;
  pairs.references = matrix_view(X, "X");
  pairs.queries = queries ? matrix_view(*queries, "queries") : pairs.references;
  pairs.neighbours = {aligned_data(neighbours, "neighbours"), neighbours.size()};
  pairs.n_classes = neighbours.shape(1);
  pairs.n_neighbors = neighbours.shape(2);
  return pairs;
}

struct LocalScatters {
  Array<double> within, weighted;
};

template <class T>
LocalScatters scatters(const Array<T>& X, const std::optional<Array<T>>& queries,
                       const Array<std::int32_t>& query_codes, const Array<index_t>& neighbours,
                       const Array<double>& priors, const std::string& method, int n_threads) {
  LocalPairs<T> pairs = pairs_of(X, queries, neighbours);
  pairs.query_codes = vector_view(query_codes, "query_codes");
  const index_t d = pairs.references.cols;
  LocalScatters out{allocate<double>({d, d}), allocate<double>({d, d})};
  const auto v = matrix_output(out.within), a = matrix_output(out.weighted);
  const auto prior_view = vector_view(priors, "priors");
  const ScatterMethod scatter_method = parse_method(method);
  {
    const Unlocked unlocked;
    local_scatters<T>(pairs, prior_view, scatter_method, v, a, n_threads);
  }
  return out;
}

template <class T>
Array<double> discriminants(const Array<T>& X, const std::optional<Array<T>>& queries,
                            const Array<index_t>& neighbours, const Array<index_t>& counts,
                            double ridge, int n_threads) {
  const LocalPairs<T> pairs = pairs_of(X, queries, neighbours);
  const auto numbers = vector_view(counts, "counts");
  auto scores = allocate<double>({numbers.size, pairs.queries.rows, pairs.n_classes});
  const auto view = flat_output(scores);
  {
    const Unlocked unlocked;
    local_discriminants<T>(pairs, numbers, ridge, view, n_threads);
  }
  return scores;
}

struct LocalGaussians {
  Array<double> means, variances;
};

template <class T>
LocalGaussians gaussians(const Array<T>& X, const std::optional<Array<T>>& queries,
                         const Array<index_t>& neighbours, double ridge, int n_threads) {
  const LocalPairs<T> pairs = pairs_of(X, queries, neighbours);
  const index_t d = pairs.references.cols;
  LocalGaussians out{allocate<double>({pairs.queries.rows, pairs.n_classes, d}),
                     allocate<double>({pairs.queries.rows, pairs.n_classes, d})};
  const auto means = flat_output(out.means), variances = flat_output(out.variances);
  {
    const Unlocked unlocked;
    local_gaussians<T>(pairs, ridge, means, variances, n_threads);
  }
  return out;
}

template <class T>
void register_local_means_of(py::module_& module) {
  module.def("local_neighbours", &neighbours<T>, py::arg("X").noconvert(),
             py::arg("codes").noconvert(), "n_classes"_a, "n_neighbors"_a,
             py::arg("queries").noconvert().none(true), py::arg("groups").noconvert().none(true),
             "n_threads"_a);
  module.def("local_scatters", &scatters<T>, py::arg("X").noconvert(),
             py::arg("queries").noconvert().none(true), py::arg("query_codes").noconvert(),
             py::arg("neighbours").noconvert(), py::arg("priors").noconvert(), "method"_a,
             "n_threads"_a);
  module.def("local_discriminants", &discriminants<T>, py::arg("X").noconvert(),
             py::arg("queries").noconvert().none(true), py::arg("neighbours").noconvert(),
             py::arg("counts").noconvert(), "ridge"_a, "n_threads"_a);
  module.def("local_gaussians", &gaussians<T>, py::arg("X").noconvert(),
             py::arg("queries").noconvert().none(true), py::arg("neighbours").noconvert(),
             "ridge"_a, "n_threads"_a);
}

}  // namespace

void register_local_means(py::module_& module) {
  py::class_<LocalScatters>(module, "LocalScatters")
      .def_readonly("within", &LocalScatters::within)
      .def_readonly("weighted", &LocalScatters::weighted);
  py::class_<LocalGaussians>(module, "LocalGaussians")
      .def_readonly("means", &LocalGaussians::means)
      .def_readonly("variances", &LocalGaussians::variances);
  register_local_means_of<float>(module);
  register_local_means_of<double>(module);
}

}  // namespace eigenfeat::bindings
