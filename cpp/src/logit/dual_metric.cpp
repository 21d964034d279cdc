// The Metric of logit.hpp where there are fewer rows than features: by the identity of Woodbury,
//
//   H = D^-1 (c B^T B + A) D^-1,   B = diag(w)^1/2 Phi D (n, p),  A diagonal
//   H^-1 = D (A^-1 - A^-1 B^T K^-1 B A^-1) D,   K = 1/c I + B A^-1 B^T (n, n)
//
// with K = L L^T by tiles, summed from products in float, and B applied by passes over the features.
// Error: about eps_float |c B^T B| / min A in the directions where B is largest, which a
// preconditioner bears; a factor in float has it a few times over.
// Cost: n^2 p flops for K, n^3 / 3 for the factor, 4 n p k for a solve.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/tiled_lower.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/logit.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "expansion/feature_groups.hpp"
#include "logit/metric_parts.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTile = TiledLower<float>::kTile;
constexpr index_t kInner = 4096;  // features of one float product

// Rows of a panel, whole tiles: a quarter of all, so that two take half of their memory, but enough
// for some threads, and as many as fit some 192 MB.
index_t dual_panel_rows(index_t n, index_t p) {
  const index_t fitting = static_cast<index_t>(48e6) / std::max<index_t>(p, 1) / kTile;
  const index_t quarter = std::max<index_t>((n / 4 + kTile - 1) / kTile, 2);
  return std::max<index_t>(std::min(fitting, quarter), 1) * kTile;
}

// sum (m, n) column-major += a b^T over all features, by way of float products.
template <class Entry>
void add_inner(MatrixView<const float> a, MatrixView<const float> b, AlignedBuffer<float>& product,
               Entry* sum) {
  const index_t m = a.rows, n = b.rows;
  product.reserve(kTile * kTile);
  const MatrixView<float> c = column_major(product.data(), m, n);
  for (index_t first = 0; first < a.cols; first += kInner) {
    const index_t width = std::min(kInner, a.cols - first);
    gemm<float>(Op::transpose, Op::none, 1.0F, a.block(0, first, m, width).transposed(),
                b.block(0, first, n, width).transposed(), 0.0F, c);
    for (index_t i = 0; i < m * n; ++i) sum[i] += static_cast<Entry>(product[i]);
  }
}

// Tiles of the kernel whose rows lie in one panel and whose columns in another, or in the same.
template <class Entry>
void add_panels(MatrixView<const float> rows, index_t row_begin, MatrixView<const float> columns,
                index_t column_begin, PerThread<AlignedBuffer<float>>& products,
                TiledLower<Entry>& kernel, int n_threads) {
  const index_t tall = (rows.rows + kTile - 1) / kTile, wide = (columns.rows + kTile - 1) / kTile;
  for_blocks(tall * wide, n_threads, [&](index_t b, int thread) {
    const index_t i = b / wide, j = b % wide;
    const index_t row = row_begin / kTile + i, column = column_begin / kTile + j;
    if (row < column) return;
    add_inner(rows.block(i * kTile, 0, kernel.size(row), rows.cols),
              columns.block(j * kTile, 0, kernel.size(column), columns.cols), products[thread],
              kernel.buffer(row, column).data());
  });
}

template <class Entry, class T>
TiledLower<Entry> scaled_kernel(const FeatureRows<T>& features, VectorView<const double> weights,
                                VectorView<const double> scale, double diagonal, int n_threads) {
  const index_t n = features.rows(), p = features.cols(), step = dual_panel_rows(n, p);
  TiledLower<Entry> kernel(n);
  for (index_t b = 0; b < kernel.tiles() * (kernel.tiles() + 1) / 2; ++b) {
    const TileIndex at = lower_tile(b);
    kernel.buffer(at.i, at.j) = AlignedBuffer<Entry>::zeros(kernel.size(at.i) * kernel.size(at.j));
  }
  const int threads = resolve_threads(n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  PerThread<AlignedBuffer<float>> products(threads);
  AlignedBuffer<float> mine(std::max<index_t>(std::min(step, n) * p, 1)), other;
  for (index_t begin = 0; begin < n; begin += step) {
    const index_t end = std::min(begin + step, n);
    fill_panel(features, weights, scale, begin, end, scratch, mine.data(), threads);
    const MatrixView<const float> rows = row_major(mine.data(), end - begin, p);
    add_panels(rows, begin, rows, begin, products, kernel, threads);
    for (index_t before = 0; before < begin; before += step) {
      other.reserve(step * p);
      fill_panel(features, weights, scale, before, before + step, scratch, other.data(), threads);
      add_panels(rows, begin, row_major(other.data(), step, p), before, products, kernel, threads);
    }
  }
  for (index_t i = 0; i < n; ++i) {
    const index_t tile = i / kTile, at = i % kTile;
    kernel.buffer(tile, tile)[at * kernel.size(tile) + at] += static_cast<Entry>(diagonal);
  }
  return kernel;
}

template <class T, class Entry>
class DualMetric final : public Metric {
 public:
  DualMetric(const FeatureRows<T>& features, VectorView<const double> weights,
             VectorView<const double> scale, VectorView<const double> diagonal, double factor,
             int n_threads)
      : features_(features),
        kernel_(0),
        roots_(weights.data, weights.data + weights.size),
        inverse_(features.cols()) {
    // (D A^-1/2)_j scales the kernel's features; its square is the diagonal of D A^-1 D.
    Vector<double> half(inverse_.size());
    for (index_t j = 0; j < half.size(); ++j) {
      half[j] = scale[j] / std::sqrt(diagonal[j]);
      inverse_[j] = half[j] * half[j];
    }
    for (double& root : roots_) root = std::sqrt(root);
    kernel_ =
        scaled_kernel<Entry>(features, weights, {half.data(), scale.size}, 1.0 / factor, n_threads);
    positive_ = factorise_tiles(kernel_, n_threads);
    if (positive_) invert_diagonal_tiles(kernel_);
  }

  bool positive() const override { return positive_; }
  index_t order() const override { return features_.cols(); }

  void solve(MatrixView<const double> b, MatrixView<double> out, int n_threads) const override {
    check_solve(*this, b, out);
    const index_t n = features_.rows(), p = order(), k = b.cols;
    double largest = 0.0;
    for (index_t j = 0; j < p; ++j) {
      for (index_t c = 0; c < k; ++c) {
        out(j, c) = inverse_[j] * b(j, c);
        largest = std::max(largest, std::abs(out(j, c)));
      }
    }
    if (!(largest > 0.0)) return;
    AlignedBuffer<T> first(p * k), scores(std::max<index_t>(n * k, 1));
    for (index_t j = 0; j < p; ++j) {
      for (index_t c = 0; c < k; ++c) first[j * k + c] = static_cast<T>(out(j, c) / largest);
    }
    const MatrixView<T> z = row_major(scores.data(), n, k);
    feature_scores<T>(features_, row_major<const T>(first.data(), p, k), z, n_threads);
    solve_kernel(z, n_threads);
    AlignedBuffer<double> back(p * k);
    feature_products<T>(features_, row_major<const T>(scores.data(), n, k),
                        row_major(back.data(), p, k), n_threads);
    for (index_t j = 0; j < p; ++j) {
      const double scaled = largest * inverse_[j];
      for (index_t c = 0; c < k; ++c) out(j, c) -= scaled * back[j * k + c];
    }
  }

 private:
  // z <- diag(w)^1/2 K^-1 diag(w)^1/2 z
  void solve_kernel(MatrixView<T> z, int n_threads) const {
    const auto root = [&](index_t i) { return roots_.empty() ? 1.0 : roots_[i]; };
    solve_scaled<Entry, T>(kernel_, z, root, root, z, n_threads);
  }

  FeatureRows<T> features_;
  TiledLower<Entry> kernel_;
  bool positive_ = false;
  Vector<double> roots_;
  Vector<double> inverse_;
};

}  // namespace

template <class T>
double mean_residual(const FeatureRows<T>& features, VectorView<const double> weights,
                     VectorView<const double> scale, double ridge, int n_threads) {
  check_metric(features, weights, scale, scale);
  const index_t n = features.rows();
  const double rows = static_cast<double>(n);
  const int threads = threads_for(rows * rows * static_cast<double>(features.cols()), n_threads);
  const TiledLower<double> kernel = scaled_kernel<double>(features, weights, scale, ridge, threads);
  AlignedBuffer<double> dense = AlignedBuffer<double>::zeros(std::max<index_t>(n * n, 1));
  const MatrixView<double> factor = column_major(dense.data(), n, n);
  for (index_t j = 0; j < n; ++j) {
    for (index_t i = j; i < n; ++i)
      factor(i, j) = kernel.tile(i / kTile, j / kTile)(i % kTile, j % kTile);
  }
  if (potrf(Triangle::lower, factor) != 0) return std::numeric_limits<double>::infinity();
  trtri<double>(Triangle::lower, factor);
  double sum = 0.0;
  for (index_t j = 0; j < n; ++j) {
    double precision = 0.0;
    for (index_t i = j; i < n; ++i) precision += factor(i, j) * factor(i, j);
    sum += 1.0 / precision - ridge;
  }
  return sum / rows;
}

template double mean_residual<float>(const FeatureRows<float>&, VectorView<const double>,
                                     VectorView<const double>, double, int);
template double mean_residual<double>(const FeatureRows<double>&, VectorView<const double>,
                                      VectorView<const double>, double, int);

template <class T>
std::unique_ptr<Metric> Metric::make_dual(const FeatureRows<T>& features,
                                          VectorView<const double> weights,
                                          VectorView<const double> scale,
                                          VectorView<const double> diagonal, double factor,
                                          Products products, int n_threads) {
  check_metric(features, weights, scale, diagonal);
  const double n = static_cast<double>(features.rows());
  const double p = static_cast<double>(features.cols());
  const int threads = threads_for(n * n * (n + p), n_threads);
  if (products == Products::half)
    return std::make_unique<DualMetric<T, T>>(features, weights, scale, diagonal, factor, threads);
  return std::make_unique<DualMetric<T, double>>(features, weights, scale, diagonal, factor,
                                                 threads);
}

template std::unique_ptr<Metric> Metric::make_dual<float>(const FeatureRows<float>&,
                                                          VectorView<const double>,
                                                          VectorView<const double>,
                                                          VectorView<const double>, double,
                                                          Products, int);
template std::unique_ptr<Metric> Metric::make_dual<double>(const FeatureRows<double>&,
                                                           VectorView<const double>,
                                                           VectorView<const double>,
                                                           VectorView<const double>, double,
                                                           Products, int);

}  // namespace eigenfeat
