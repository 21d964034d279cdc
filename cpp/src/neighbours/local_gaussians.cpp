#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "eigenfeat/local_means.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "neighbours/gaussian_sums.hpp"

namespace eigenfeat {
namespace {

// The nearest rows of one class to a query, and their sums.
template <class T>
struct GaussianQuery {
  Vector<const T*> rows;
  Vector<index_t> counts;
  GaussianSums sums;

  // A class with fewer rows than a count uses all its rows.
  void start(VectorView<const index_t> wanted) {
    counts.clear();
    for (index_t k = 0; k < wanted.size; ++k) {
      const index_t count = std::min(wanted[k], rows.size());
      if (counts.empty() || counts.back() != count) counts.push_back(count);
    }
    sums.start(counts.size());
  }

  void add(const T* x, index_t first, index_t last, double ridge) {
    kernels<GaussianKernels<T>>().add(x, rows.data(), rows.size(), first, last, counts.data(),
                                      counts.size(), static_cast<T>(ridge), sums.parts());
  }

  // Results of successive counts are written to `out` with the given stride.
  void write(index_t n_counts, double* out, index_t stride) const {
    const index_t distinct = counts.size();
    for (index_t k = 0; k < n_counts; ++k) {
      const double score = rows.empty() ? kNever : sums.score(std::min(k, distinct - 1));
      out[k * stride] = std::isnan(score) ? kNever : score;
    }
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
};

template <class T>
void check_pairs(const LocalPairs<T>& pairs, double ridge) {
  const index_t d = pairs.references.cols;
  require(pairs.queries.cols == d, "queries", std::to_string(d) + " columns",
          std::to_string(pairs.queries.cols));
  require(static_cast<T>(ridge) >= std::numeric_limits<T>::min(), "ridge", "a positive number",
          std::to_string(ridge));
  check_neighbours(pairs);
}

constexpr index_t kQueries = 32;  // queries of a task

// Calls work(c, begin, end, queries) for every class c and queries [begin, end); `queries` has the
// nearest rows of the class for each query. The loop goes class by class, so that the rows of a
// class stay in the cache.
template <class T, class F>
void for_pairs(const LocalPairs<T>& pairs, int n_threads, F&& work) {
  const index_t m = pairs.queries.rows, classes = pairs.n_classes;
  const double flops = 3.0 * static_cast<double>(m) * static_cast<double>(classes) *
                       static_cast<double>(pairs.n_neighbors) *
                       static_cast<double>(pairs.references.cols);
  const int threads = threads_for(flops, n_threads);
  PerThread<Vector<GaussianQuery<T>>> scratch(threads);
  const index_t chunks = (m + kQueries - 1) / kQueries;
  for_blocks(chunks * classes, threads, [&](index_t block, int thread) {
    Vector<GaussianQuery<T>>& queries = scratch[thread];
    queries.resize(kQueries);
    const index_t c = block / chunks, begin = block % chunks * kQueries;
    const index_t end = std::min(begin + kQueries, m);
    for (index_t i = begin; i < end; ++i) {
      const index_t* list = pairs.neighbours.data + (i * classes + c) * pairs.n_neighbors;
      Vector<const T*>& rows = queries[i - begin].rows;
      rows.clear();
      for (index_t n = 0; n < pairs.n_neighbors && list[n] >= 0; ++n)
        rows.push_back(pairs.references.row(list[n]));
    }
    work(c, begin, end, queries.data());
  });
}

// Number of columns at a time, for which the rows of a class fit the second-level cache.
template <class T>
index_t columns_at_once(const LocalPairs<T>& pairs) {
  constexpr double bytes = 384e3;
  constexpr index_t unit = 64;
  const double rows = static_cast<double>(std::max<index_t>(pairs.references.rows, 1)) /
                      static_cast<double>(std::max<index_t>(pairs.n_classes, 1));
  const double fitting = bytes / (rows * static_cast<double>(sizeof(T)));
  const double most = static_cast<double>(std::max<index_t>(pairs.references.cols, unit));
  return std::max(unit, static_cast<index_t>(std::min(fitting, most)) / unit * unit);
}

}  // namespace

template <class T>
void local_discriminants(const LocalPairs<T>& pairs, VectorView<const index_t> counts, double ridge,
                         VectorView<double> scores, int n_threads) {
  const index_t d = pairs.references.cols, m = pairs.queries.rows, classes = pairs.n_classes;
  for (index_t k = 0; k < counts.size; ++k) {
    require(counts[k] >= 1 && (k == 0 || counts[k] > counts[k - 1]), "counts",
            "ascending numbers >= 1", std::to_string(counts[k]));
  }
  check_pairs(pairs, ridge);
  const index_t width = columns_at_once(pairs);
  for_pairs(pairs, n_threads, [&](index_t c, index_t begin, index_t end, GaussianQuery<T>* q) {
    for (index_t i = begin; i < end; ++i) q[i - begin].start(counts);
    for (index_t j = 0; j < d; j += width) {
      for (index_t i = begin; i < end; ++i) {
        if (!q[i - begin].rows.empty())
          q[i - begin].add(pairs.queries.row(i), j, std::min(j + width, d), ridge);
      }
    }
    for (index_t i = begin; i < end; ++i)
      q[i - begin].write(counts.size, scores.data + i * classes + c, m * classes);
  });
}

template <class T>
void local_gaussians(const LocalPairs<T>& pairs, double ridge, VectorView<double> means,
                     VectorView<double> variances, int n_threads) {
  const index_t d = pairs.references.cols;
  check_pairs(pairs, ridge);
  for_pairs(pairs, n_threads, [&](index_t c, index_t begin, index_t end, GaussianQuery<T>* q) {
    for (index_t i = begin; i < end; ++i) {
      const index_t at = (i * pairs.n_classes + c) * d;
      double *mean = means.data + at, *variance = variances.data + at;
      const Vector<const T*>& rows = q[i - begin].rows;
      if (!rows.empty()) {
        kernels<GaussianKernels<T>>().of_rows(rows.data(), rows.size(), d, static_cast<T>(ridge),
                                              mean, variance);
      } else {
        std::fill(mean, mean + d, std::numeric_limits<double>::quiet_NaN());
        std::fill(variance, variance + d, std::numeric_limits<double>::quiet_NaN());
      }
    }
  });
}

template void local_discriminants<float>(const LocalPairs<float>&, VectorView<const index_t>,
                                         double, VectorView<double>, int);
template void local_discriminants<double>(const LocalPairs<double>&, VectorView<const index_t>,
                                          double, VectorView<double>, int);

template void local_gaussians<float>(const LocalPairs<float>&, double, VectorView<double>,
                                     VectorView<double>, int);
template void local_gaussians<double>(const LocalPairs<double>&, double, VectorView<double>,
                                      VectorView<double>, int);

}  // namespace eigenfeat
