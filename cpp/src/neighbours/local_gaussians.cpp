#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "eigenfeat/local_means.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "neighbours/gaussian_sums.hpp"

namespace eigenfeat {
namespace {

template <class T>
struct GaussianScratch {
  std::vector<const T*> rows;
  std::vector<index_t> counts;
  GaussianSums sums;
};

// Scores of one query under one class: `out` steps over counts by `stride`.
template <class T>
void score_pair(const T* x, const T* const* rows, index_t n_rows, index_t d,
                VectorView<const index_t> counts, double ridge, GaussianScratch<T>& s, double* out,
                index_t stride) {
  if (n_rows == 0) {
    for (index_t k = 0; k < counts.size; ++k)
      out[k * stride] = -std::numeric_limits<double>::infinity();
    return;
  }
  // A class with fewer rows than a count uses what it has.
  s.counts.clear();
  for (index_t k = 0; k < counts.size; ++k) {
    const index_t count = std::min(counts[k], n_rows);
    if (s.counts.empty() || s.counts.back() != count) s.counts.push_back(count);
  }
  const index_t distinct = static_cast<index_t>(s.counts.size());
  s.sums.start(distinct);
  kernels<GaussianKernels<T>>().add(x, rows, n_rows, d, s.counts.data(), distinct,
                                    static_cast<T>(ridge), s.sums.parts());
  for (index_t k = 0; k < counts.size; ++k) {
    const double score = s.sums.score(std::min(k, distinct - 1));
    out[k * stride] = std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
  }
}

template <class T>
void check_pairs(const LocalPairs<T>& pairs, double ridge) {
  const index_t d = pairs.references.cols;
  require(pairs.queries.cols == d, "queries", std::to_string(d) + " columns",
          std::to_string(pairs.queries.cols));
  require(static_cast<T>(ridge) >= std::numeric_limits<T>::min(), "ridge", "a positive number",
          std::to_string(ridge));
  check_neighbours(pairs);
}

// work(i, c, n, scratch) for every query and class; scratch.rows has the class's n nearest rows.
template <class T, class F>
void for_pairs(const LocalPairs<T>& pairs, int n_threads, F&& work) {
  const index_t m = pairs.queries.rows, classes = pairs.n_classes;
  const double flops = 3.0 * static_cast<double>(m) * static_cast<double>(classes) *
                       static_cast<double>(pairs.n_neighbors) *
                       static_cast<double>(pairs.references.cols);
  const int threads = threads_for(flops, n_threads);
  PerThread<GaussianScratch<T>> scratch(threads);
  // Class by class: its rows stay in the cache while queries go by.
  constexpr index_t chunk = 32;
  const index_t chunks = (m + chunk - 1) / chunk;
  for_blocks(chunks * classes, threads, [&](index_t block, int thread) {
    GaussianScratch<T>& s = scratch[thread];
    s.rows.resize(static_cast<std::size_t>(pairs.n_neighbors));
    const index_t c = block / chunks, begin = block % chunks * chunk;
    for (index_t i = begin; i < std::min(begin + chunk, m); ++i) {
      const index_t* list = pairs.neighbours.data + (i * classes + c) * pairs.n_neighbors;
      index_t n = 0;
      for (; n < pairs.n_neighbors && list[n] >= 0; ++n)
        s.rows[static_cast<std::size_t>(n)] = pairs.references.row(list[n]);
      work(i, c, n, s);
    }
  });
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
  for_pairs(pairs, n_threads, [&](index_t i, index_t c, index_t n, GaussianScratch<T>& s) {
    score_pair<T>(pairs.queries.row(i), s.rows.data(), n, d, counts, ridge, s,
                  scores.data + i * classes + c, m * classes);
  });
}

template <class T>
void local_gaussians(const LocalPairs<T>& pairs, double ridge, VectorView<double> means,
                     VectorView<double> variances, int n_threads) {
  const index_t d = pairs.references.cols;
  check_pairs(pairs, ridge);
  for_pairs(pairs, n_threads, [&](index_t i, index_t c, index_t n, GaussianScratch<T>& s) {
    const index_t at = (i * pairs.n_classes + c) * d;
    double *mean = means.data + at, *variance = variances.data + at;
    if (n > 0) {
      kernels<GaussianKernels<T>>().of_rows(s.rows.data(), n, d, static_cast<T>(ridge), mean,
                                            variance);
    } else {
      std::fill(mean, mean + d, std::numeric_limits<double>::quiet_NaN());
      std::fill(variance, variance + d, std::numeric_limits<double>::quiet_NaN());
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
