// The Metric of logit.hpp for fewer rows than features, by the Woodbury identity:
//
//   H = D^-1 (c B^T B + A) D^-1,   B = diag(w)^1/2 Phi D (n, p),  A diagonal
//   H^-1 = D (A^-1 - A^-1 B^T K^-1 B A^-1) D,   K = 1/c I + B A^-1 B^T (n, n)
//
// with K = L L^T by tiles, summed from products in float, and B applied by passes over the features.
// Error: about eps_float |c B^T B| / min A in the directions where B is largest, which is
// acceptable for a preconditioner; with a factor in float, a small multiple of this error.
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

constexpr index_t kInner = 4096;  // number of features that are summed in float

// Rows of a panel, a multiple of a tile. A panel has all rows if they take up to about 32 MB,
// otherwise a quarter of the rows, so that two panels take half of the memory. Panels are large
// enough for several threads, and take at most about 192 MB.
index_t dual_panel_rows(index_t n, index_t p) {
  const index_t fitting = static_cast<index_t>(48e6) / std::max<index_t>(p, 1) / kTile;
  const index_t all = (n + kTile - 1) / kTile;
  if (n * p <= static_cast<index_t>(8e6)) return std::max<index_t>(all, 1) * kTile;
  const index_t quarter = std::max<index_t>((n / 4 + kTile - 1) / kTile, 2);
  return std::max<index_t>(std::min(fitting, quarter), 1) * kTile;
}

// sum (m, n) column-major += a b^T over all features, with products in type Number; only the lower
// triangle for a diagonal tile.
template <class Number, class Entry>
void add_inner(MatrixView<const Number> a, MatrixView<const Number> b, bool diagonal,
               AlignedBuffer<Number>& product, Entry* sum) {
  const index_t m = a.rows, n = b.rows;
  product.reserve(kTile * kTile);
  const MatrixView<Number> c = column_major(product.data(), m, n);
  for (index_t first = 0; first < a.cols; first += kInner) {
    const index_t width = std::min(kInner, a.cols - first);
    const MatrixView<const Number> left = a.block(0, first, m, width).transposed();
    if (diagonal) {
      syrk<Number>(Triangle::lower, Op::transpose, Number(1), left, Number(0), c);
    } else {
      gemm<Number>(Op::transpose, Op::none, Number(1), left,
                   b.block(0, first, n, width).transposed(), Number(0), c);
    }
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = diagonal ? j : 0; i < m; ++i)
        sum[j * m + i] += static_cast<Entry>(product[j * m + i]);
    }
  }
}

// Tiles of the kernel with rows in one panel, and columns in another panel or in this one.
template <class Number, class Entry>
void add_panels(MatrixView<const Number> rows, index_t row_begin, MatrixView<const Number> columns,
                index_t column_begin, PerThread<AlignedBuffer<Number>>& products,
                TiledLower<Entry>& kernel, int n_threads) {
  const index_t tall = (rows.rows + kTile - 1) / kTile, wide = (columns.rows + kTile - 1) / kTile;
  for_blocks(tall * wide, n_threads, [&](index_t b, int thread) {
    const index_t i = b / wide, j = b % wide;
    const index_t row = row_begin / kTile + i, column = column_begin / kTile + j;
    if (row < column) return;
    add_inner<Number>(rows.block(i * kTile, 0, kernel.size(row), rows.cols),
                      columns.block(j * kTile, 0, kernel.size(column), columns.cols), row == column,
                      products[thread], kernel.buffer(row, column).data());
  });
}

template <class Number, class Entry, class T>
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
  PerThread<AlignedBuffer<Number>> products(threads);
  AlignedBuffer<Number> mine(std::max<index_t>(std::min(step, n) * p, 1)), other;
  for (index_t begin = 0; begin < n; begin += step) {
    const index_t end = std::min(begin + step, n);
    const MatrixView<Number> rows = row_major(mine.data(), end - begin, p);
    fill_panel(features, weights, scale, begin, end, scratch, rows, threads);
    add_panels<Number>(rows, begin, rows, begin, products, kernel, threads);
    for (index_t before = 0; before < begin; before += step) {
      other.reserve(step * p);
      const MatrixView<Number> columns = row_major(other.data(), step, p);
      fill_panel(features, weights, scale, before, before + step, scratch, columns, threads);
      add_panels<Number>(rows, begin, columns, before, products, kernel, threads);
    }
  }
  for (index_t i = 0; i < n; ++i) {
    const index_t tile = i / kTile, at = i % kTile;
    kernel.buffer(tile, tile)[at * kernel.size(tile) + at] += static_cast<Entry>(diagonal);
  }
  return kernel;
}

// The symmetric matrix (n, n), row-major, from the tiles of its lower triangle.
void unpack(const TiledLower<double>& kernel, MatrixView<double> out, int n_threads) {
  const index_t tiles = kernel.tiles();
  for_blocks(tiles * (tiles + 1) / 2, n_threads, [&](index_t b, int) {
    const TileIndex at = lower_tile(b);
    const MatrixView<const double> tile = kernel.tile(at.i, at.j);
    for (index_t j = 0; j < tile.cols; ++j) {
      double* line = out.row(at.j * kTile + j) + at.i * kTile;
      for (index_t i = at.i == at.j ? j : 0; i < tile.rows; ++i) line[i] = tile(i, j);
    }
    for (index_t i = 0; i < tile.rows; ++i) {
      double* line = out.row(at.i * kTile + i) + at.j * kTile;
      const index_t end = at.i == at.j ? i : tile.cols;
      for (index_t j = 0; j < end; ++j) line[j] = tile(i, j);
    }
  });
}

void check_kernel(MatrixView<const double> kernel, VectorView<const double> weights) {
  const index_t n = kernel.rows;
  require(kernel.cols == n && kernel.is_row_major(), "kernel", "a square matrix",
          shape_text(n, kernel.cols));
  require(weights.empty() || weights.size == n, "weights", std::to_string(n) + " entries",
          std::to_string(weights.size));
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
    // (D A^-1/2)_j scales the features of the kernel; its square is the diagonal of D A^-1 D.
    Vector<double> half(inverse_.size());
    for (index_t j = 0; j < half.size(); ++j) {
      half[j] = scale[j] / std::sqrt(diagonal[j]);
      inverse_[j] = half[j] * half[j];
    }
    for (double& root : roots_) root = std::sqrt(root);
    kernel_ = scaled_kernel<float, Entry>(features, weights, {half.data(), scale.size},
                                          1.0 / factor, n_threads);
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
  const TiledLower<double> kernel =
      scaled_kernel<float, double>(features, weights, scale, ridge, threads);
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
void feature_kernel(const FeatureRows<T>& features, VectorView<const double> scale, bool coarse,
                    MatrixView<double> kernel, int n_threads) {
  check_metric(features, {}, scale, scale);
  const index_t n = features.rows();
  require(kernel.rows == n && kernel.cols == n && kernel.is_row_major(), "kernel", shape_text(n, n),
          shape_text(kernel));
  const double rows = static_cast<double>(n);
  const int threads = threads_for(rows * rows * static_cast<double>(features.cols()), n_threads);
  unpack(coarse ? scaled_kernel<float, double>(features, {}, scale, 0.0, threads)
                : scaled_kernel<double, double>(features, {}, scale, 0.0, threads),
         kernel, threads);
}

template void feature_kernel<float>(const FeatureRows<float>&, VectorView<const double>, bool,
                                    MatrixView<double>, int);
template void feature_kernel<double>(const FeatureRows<double>&, VectorView<const double>, bool,
                                     MatrixView<double>, int);

void kernel_ridge(MatrixView<const double> kernel, VectorView<const double> weights,
                  MatrixView<const double> targets, VectorView<const double> ridges,
                  MatrixView<double> out, int n_threads) {
  const index_t n = kernel.rows, k = targets.cols, m = ridges.size;
  check_kernel(kernel, weights);
  require(targets.rows == n && targets.is_row_major(), "targets", std::to_string(n) + " rows",
          std::to_string(targets.rows));
  require(out.rows == m * n && out.cols == k && out.is_row_major(), "out", shape_text(m * n, k),
          shape_text(out));
  const double rows = static_cast<double>(n);
  const int threads = threads_for(static_cast<double>(m) * rows * rows * rows / 3.0, n_threads);
  const auto root = [&](index_t i) { return weights.empty() ? 1.0 : std::sqrt(weights[i]); };
  for_blocks(m, threads, [&](index_t b, int) {
    AlignedBuffer<double> entries(std::max<index_t>(n * n, 1)), solved(std::max<index_t>(n * k, 1));
    const MatrixView<double> a = column_major(entries.data(), n, n);
    const MatrixView<double> x = column_major(solved.data(), n, k);
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = j; i < n; ++i) a(i, j) = root(i) * root(j) * kernel(j, i);
      a(j, j) += ridges[b];
      for (index_t c = 0; c < k; ++c) x(j, c) = root(j) * targets(j, c);
    }
    const bool positive = potrf(Triangle::lower, a) == 0;
    if (positive) {
      trsm<double>(Side::left, Triangle::lower, Op::none, 1.0, a, x);
      trsm<double>(Side::left, Triangle::lower, Op::transpose, 1.0, a, x);
    }
    for (index_t i = 0; i < n; ++i) {
      for (index_t c = 0; c < k; ++c)
        out(b * n + i, c) = positive ? root(i) * x(i, c) : std::numeric_limits<double>::quiet_NaN();
    }
  });
}

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
  if (products == Products::coarse)
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
