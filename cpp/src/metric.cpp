// The Metric of logit.hpp: Gram matrix by panels, Cholesky by tiles, solves by narrow products.
#include <algorithm>
#include <cmath>
#include <string>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/logit.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "feature_groups.hpp"
#include "tile_products.hpp"
#include "tiled_lower.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTile = TiledLower<float>::kTile;

// Rows of a panel: many, so that adding a product to the sums costs little beside it; few, so that
// the panel takes some 64 MB.
index_t panel_rows(index_t p) {
  const index_t fitting = static_cast<index_t>(16e6) / std::max<index_t>(p, 1);
  return std::clamp<index_t>(fitting / 256 * 256, 256, 2048);
}

// panel (rows, p) row-major <- sqrt(weight) scale phi
template <class T>
void fill_panel(const FeatureRows<T>& features, VectorView<const double> weights,
                VectorView<const double> scale, index_t begin, index_t end,
                PerThread<TileScratch<T>>& scratch, float* panel, int n_threads) {
  const index_t p = features.cols(), varying = features.varying();
  const Groups groups = Groups::of<T>(features.rows(), p, 1);
  for_ranges(end - begin, groups.tile, n_threads, [&](index_t first, index_t last, int thread) {
    const MatrixView<const T> tile =
        load_tile(features, begin + first, begin + last, scratch[thread]);
    for (index_t r = 0; r < tile.rows; ++r) {
      const double root = weights.empty() ? 1.0 : std::sqrt(weights[begin + first + r]);
      float* out = panel + (first + r) * p;
      const T* in = tile.row(r);
      for (index_t c = 0; c < varying; ++c)
        out[c] = static_cast<float>(root * scale[c] * static_cast<double>(in[c]));
      if (features.constant) out[varying] = static_cast<float>(root * scale[varying]);
    }
  });
}

// One tile of sums += panel^T panel, by way of a float product.
void add_product(MatrixView<const float> panel, const TiledLower<double>& sums, TileIndex at,
                 AlignedBuffer<float>& product, double* sum) {
  const index_t m = sums.size(at.i), n = sums.size(at.j), rows = panel.rows;
  product.reserve(kTile * kTile);
  const MatrixView<float> c = column_major(product.data(), m, n);
  const auto a = panel.block(0, at.i * kTile, rows, m).transposed();
  const auto b = panel.block(0, at.j * kTile, rows, n).transposed();
  if (at.i == at.j) {
    syrk<float>(Triangle::lower, Op::none, 1.0F, a, 0.0F, c);
    for (index_t j = 0; j < n; ++j) {
      for (index_t i = j; i < m; ++i) sum[j * m + i] += static_cast<double>(c(i, j));
    }
    return;
  }
  gemm<float>(Op::none, Op::transpose, 1.0F, a, b, 0.0F, c);
  for (index_t i = 0; i < m * n; ++i) sum[i] += static_cast<double>(product[i]);
}

template <class T>
TiledLower<double> scaled_gram(const FeatureRows<T>& features, VectorView<const double> weights,
                               VectorView<const double> scale, int n_threads) {
  const index_t n = features.rows(), p = features.cols();
  TiledLower<double> sums(p);
  const index_t count = sums.tiles() * (sums.tiles() + 1) / 2, rows = panel_rows(p);
  for (index_t b = 0; b < count; ++b) {
    const TileIndex at = lower_tile(b);
    sums.buffer(at.i, at.j) = AlignedBuffer<double>::zeros(sums.size(at.i) * sums.size(at.j));
  }
  const int threads = resolve_threads(n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  PerThread<AlignedBuffer<float>> products(threads);
  AlignedBuffer<float> panel(std::max<index_t>(std::min(rows, n) * p, 1));
  for (index_t begin = 0; begin < n; begin += rows) {
    const index_t end = std::min(begin + rows, n);
    fill_panel(features, weights, scale, begin, end, scratch, panel.data(), threads);
    const MatrixView<const float> filled = row_major(panel.data(), end - begin, p);
    for_blocks(count, threads, [&](index_t b, int thread) {
      const TileIndex at = lower_tile(b);
      add_product(filled, sums, at, products[thread], sums.buffer(at.i, at.j).data());
    });
  }
  return sums;
}

// factor * sums + diagonal in float; the sums are given up tile by tile.
TiledLower<float> in_float(TiledLower<double>& sums, double factor,
                           VectorView<const double> diagonal, int n_threads) {
  TiledLower<float> out(sums.order());
  const index_t count = sums.tiles() * (sums.tiles() + 1) / 2;
  for_blocks(count, n_threads, [&](index_t b, int) {
    const TileIndex at = lower_tile(b);
    const index_t m = sums.size(at.i), size = m * sums.size(at.j);
    AlignedBuffer<float> tile(size);
    AlignedBuffer<double>& from = sums.buffer(at.i, at.j);
    for (index_t i = 0; i < size; ++i) tile[i] = static_cast<float>(factor * from[i]);
    if (at.i == at.j) {
      for (index_t i = 0; i < m; ++i)
        tile[i * m + i] = static_cast<float>(factor * from[i * m + i] + diagonal[at.i * kTile + i]);
    }
    out.buffer(at.i, at.j) = std::move(tile);
    from = AlignedBuffer<double>();
  });
  return out;
}

class TiledMetric final : public Metric {
 public:
  TiledMetric(TiledLower<float> factor, bool positive, VectorView<const double> scale)
      : factor_(std::move(factor)),
        positive_(positive),
        scale_(scale.data, scale.data + scale.size) {
    if (positive_) invert_diagonal();
  }

  bool positive() const override { return positive_; }
  index_t order() const override { return factor_.order(); }

  void solve(MatrixView<const double> b, MatrixView<double> out, int n_threads) const override {
    const index_t p = order(), k = b.cols, width = padded_width<float>(k);
    require(positive_, "metric", "a positive definite one", "one that is not");
    require(b.rows == p && b.is_row_major(), "b", std::to_string(p) + " rows",
            std::to_string(b.rows));
    require(out.rows == p && out.cols == k && out.is_row_major(), "out", "the shape of b",
            "another");
    const double work = 4.0 * static_cast<double>(p) * static_cast<double>(p * width);
    const int threads = threads_for(work, n_threads);
    double largest = 0.0;
    for (index_t i = 0; i < p; ++i) {
      for (index_t c = 0; c < k; ++c)
        largest = std::max(largest, std::abs(scale_[static_cast<std::size_t>(i)] * b(i, c)));
    }
    const double unit = largest > 0.0 ? largest : 1.0;
    AlignedBuffer<float> x = AlignedBuffer<float>::zeros(std::max<index_t>(p * width, 1));
    for (index_t i = 0; i < p; ++i) {
      const double factor = scale_[static_cast<std::size_t>(i)] / unit;
      for (index_t c = 0; c < k; ++c) x[i * width + c] = static_cast<float>(factor * b(i, c));
    }
    forward(x.data(), width, threads);
    backward(x.data(), width, threads);
    for (index_t i = 0; i < p; ++i) {
      const double factor = scale_[static_cast<std::size_t>(i)] * unit;
      for (index_t c = 0; c < k; ++c) out(i, c) = factor * static_cast<double>(x[i * width + c]);
    }
  }

 private:
  // Diagonal tiles become their inverses, upper triangles zero: a solve is then products alone.
  void invert_diagonal() {
    for (index_t i = 0; i < factor_.tiles(); ++i) {
      const MatrixView<float> tile = factor_.tile(i, i);
      for (index_t c = 0; c < tile.cols; ++c) std::fill(tile.col(c), tile.col(c) + c, 0.0F);
      trtri<float>(Triangle::lower, tile);
    }
  }

  // A column-major tile L (m, n) read by rows is L^T (n, m).
  MatrixView<const float> rows_of(index_t i, index_t j) const {
    return factor_.tile(i, j).transposed();
  }

  // x <- L^-1 x
  void forward(float* x, index_t width, int threads) const {
    AlignedBuffer<float> negative(kTile * width);
    for (index_t j = 0; j < factor_.tiles(); ++j) {
      float* at = x + j * kTile * width;
      const index_t size = factor_.size(j) * width;
      std::copy(at, at + size, negative.data());
      std::fill(at, at + size, 0.0F);
      add_products<float>(rows_of(j, j), negative.data(), width, at);
      for (index_t i = 0; i < size; ++i) negative[i] = -at[i];
      for_blocks(factor_.tiles() - j - 1, threads, [&](index_t b, int) {
        const index_t i = j + 1 + b;
        add_products<float>(rows_of(i, j), negative.data(), width, x + i * kTile * width);
      });
    }
  }

  // x <- L^-T x
  void backward(float* x, index_t width, int threads) const {
    AlignedBuffer<float> negative(kTile * width);
    for (index_t j = factor_.tiles() - 1; j >= 0; --j) {
      float* at = x + j * kTile * width;
      const index_t size = factor_.size(j) * width;
      std::copy(at, at + size, negative.data());
      std::fill(at, at + size, 0.0F);
      add_scores<float>(rows_of(j, j), negative.data(), width, at);
      for (index_t i = 0; i < size; ++i) negative[i] = -at[i];
      for_blocks(j, threads, [&](index_t i, int) {
        add_scores<float>(rows_of(j, i), negative.data(), width, x + i * kTile * width);
      });
    }
  }

  TiledLower<float> factor_;
  bool positive_;
  std::vector<double> scale_;
};

}  // namespace

template <class T>
std::unique_ptr<Metric> Metric::make(const FeatureRows<T>& features,
                                     VectorView<const double> weights,
                                     VectorView<const double> scale,
                                     VectorView<const double> diagonal, double factor,
                                     int n_threads) {
  features.check();
  const index_t p = features.cols();
  require(scale.size == p, "scale", std::to_string(p) + " entries", std::to_string(scale.size));
  require(diagonal.size == p, "diagonal", std::to_string(p) + " entries",
          std::to_string(diagonal.size));
  require(weights.empty() || weights.size == features.rows(), "weights",
          std::to_string(features.rows()) + " entries", std::to_string(weights.size));
  const double n = static_cast<double>(features.rows()), order = static_cast<double>(p);
  const int threads = threads_for(order * order * (n + order), n_threads);
  TiledLower<double> sums = scaled_gram(features, weights, scale, threads);
  TiledLower<float> matrix = in_float(sums, factor, diagonal, threads);
  const bool positive = factorise_tiles(matrix, threads);
  return std::make_unique<TiledMetric>(std::move(matrix), positive, scale);
}

template std::unique_ptr<Metric> Metric::make<float>(const FeatureRows<float>&,
                                                     VectorView<const double>,
                                                     VectorView<const double>,
                                                     VectorView<const double>, double, int);
template std::unique_ptr<Metric> Metric::make<double>(const FeatureRows<double>&,
                                                      VectorView<const double>,
                                                      VectorView<const double>,
                                                      VectorView<const double>, double, int);

}  // namespace eigenfeat
