#include "moments/sparse_moments.hpp"

#include <cmath>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {

// Scattered updates run at a few per cent of the rate of a rank-k update.
constexpr double kMaxDensity = 0.1;
// mean^2 <= 100 var keeps 14 of 16 digits.
constexpr double kLargestSquaredRatio = 100.0;
constexpr index_t kStripes = 16;  // tasks into which the products of a class are divided

}  // namespace

template <class T>
SparseBatch<T>::SparseBatch(const CsrView<T>& rows, VectorView<const std::int32_t> labels,
                            VectorView<const double> weights, index_t n_classes, int n_threads)
    : rows_(rows),
      weights_(weights),
      n_threads_(n_threads),
      order_(labels, n_classes),
      weight_(n_classes, 0.0),
      zeros_(rows.cols, 0.0) {
  const double size = static_cast<double>(rows.rows) * static_cast<double>(rows.cols);
  if (static_cast<double>(rows.indptr[rows.rows] - rows.indptr[0]) > kMaxDensity * size) return;
  for (index_t p = rows.indptr[0]; p < rows.indptr[rows.rows]; ++p) {
    // The general path reports entries that are not finite or too large, and wrong weights.
    if (!(std::abs(static_cast<double>(rows.values[p])) < 1e100)) return;
  }
  for (index_t i = 0; i < weights.size; ++i) {
    if (!(weights[i] >= 0.0 && weights[i] < 1e100)) return;
  }
  reduce();
}

template <class T>
void SparseBatch<T>::reduce() {
  const index_t width = rows_.cols;
  mean_.assign(weight_.size() * width, 0.0);
  worthwhile_ = true;
  Vector<double> squares(width);
  for (index_t c = 0; c < weight_.size(); ++c) {
    std::fill(squares.begin(), squares.end(), 0.0);
    double* mean = mean_.data() + c * rows_.cols;
    double& total = weight_[c];
    for (index_t p = order_.begin[c]; p < order_.begin[c + 1]; ++p) {
      const index_t i = order_.rows[p];
      const double weight = row_weight(i);
      total += weight;
      for (index_t q = rows_.indptr[i]; q < rows_.indptr[i + 1]; ++q) {
        const double value = static_cast<double>(rows_.values[q]);
        mean[rows_.indices[q]] += weight * value;
        squares[rows_.indices[q]] += weight * value * value;
      }
    }
    if (total <= 0.0) continue;
    for (index_t j = 0; j < width; ++j) mean[j] /= total;
    worthwhile_ = worthwhile_ && well_centred(c, squares);
  }
}

template <class T>
bool SparseBatch<T>::well_centred(index_t c, const Vector<double>& squares) const {
  for (index_t j = 0; j < squares.size(); ++j) {
    const double mean = this->mean(c)[j], second = squares[j] / weight(c);
    if (mean * mean > kLargestSquaredRatio * (second - mean * mean) && mean != 0.0) return false;
  }
  return true;
}

// Stripes of rows of the result, of about equal area; one task sums each stripe in row order.
template <class T>
void SparseBatch<T>::add_products(index_t c, double* lower) const {
  const index_t d = rows_.cols;
  const auto edge = [d](index_t stripe) {
    const double part = std::sqrt(static_cast<double>(stripe) / static_cast<double>(kStripes));
    return static_cast<index_t>(std::llround(part * static_cast<double>(d)));
  };
  const double work = static_cast<double>(order_.count(c)) * static_cast<double>(d);
  for_blocks(kStripes, threads_for(work, n_threads_), [&](index_t stripe, int) {
    const index_t first = edge(stripe), last = edge(stripe + 1);
    for (index_t p = order_.begin[c]; p < order_.begin[c + 1]; ++p) {
      const index_t i = order_.rows[p];
      for (index_t a = rows_.indptr[i]; a < rows_.indptr[i + 1]; ++a) {
        const index_t j = rows_.indices[a];
        if (j < first || j >= last) continue;
        const double left = row_weight(i) * static_cast<double>(rows_.values[a]);
        double* row = lower + j * d;
        for (index_t b = rows_.indptr[i]; b < rows_.indptr[i + 1]; ++b) {
          const index_t l = rows_.indices[b];
          if (l <= j) row[l] += left * static_cast<double>(rows_.values[b]);
        }
      }
    }
  });
}

template class SparseBatch<float>;
template class SparseBatch<double>;

}  // namespace eigenfeat
