// The Metric of logit.hpp: Gram matrix by panels, Cholesky factor by tiles, solves by narrow
// products.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/byte_products.hpp"
#include "base/tile_products.hpp"
#include "base/tiled_lower.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/logit.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "expansion/feature_groups.hpp"
#include "logit/byte_panel.hpp"
#include "logit/metric_parts.hpp"

namespace eigenfeat {
namespace {

// One tile of sums += panel^T panel, with a product in float.
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
TiledLower<double> tiled_gram(const FeatureRows<T>& features, VectorView<const double> weights,
                              VectorView<const double> scale, bool bytes, int n_threads) {
  const index_t n = features.rows(), p = features.cols();
  TiledLower<double> sums(p);
  const index_t count = sums.tiles() * (sums.tiles() + 1) / 2, rows = gram_panel_rows(p);
  for (index_t b = 0; b < count; ++b) {
    const TileIndex at = lower_tile(b);
    sums.buffer(at.i, at.j) = AlignedBuffer<double>::zeros(sums.size(at.i) * sums.size(at.j));
  }
  const int threads = resolve_threads(n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  PerThread<AlignedBuffer<float>> products(threads);
  PerThread<AlignedBuffer<std::int32_t>> byte_products(threads);
  AlignedBuffer<float> panel(std::max<index_t>(std::min(rows, n) * p, 1));
  BytePanel packed(bytes ? std::min(rows, n) : 0, bytes ? p : 0);
  index_t filled = 0;  // rows of the float panel
  const auto add_filled = [&] {
    const MatrixView<const float> lines = row_major(panel.data(), filled, p);
    for_blocks(filled > 0 ? count : 0, threads, [&](index_t b, int thread) {
      const TileIndex at = lower_tile(b);
      add_product(lines, sums, at, products[thread], sums.buffer(at.i, at.j).data());
    });
    filled = 0;
  };
  for (index_t begin = 0; begin < n; begin += rows) {
    const index_t end = std::min(begin + rows, n);
    if (!bytes) {
      filled = end - begin;
      fill_panel(features, weights, scale, begin, end, scratch, row_major(panel.data(), filled, p),
                 threads);
      add_filled();
      continue;
    }
    const MatrixView<float> lines = packed.rows(end - begin);
    fill_panel(features, weights, scale, begin, end, scratch, lines, threads);
    packed.pack(end - begin, threads);
    for_blocks(count, threads, [&](index_t b, int thread) {
      const TileIndex at = lower_tile(b);
      packed.add_product(at, sums.size(at.i), sums.size(at.j), byte_products[thread],
                         sums.buffer(at.i, at.j).data());
    });
    if (filled + packed.outside().size() > std::min(rows, n)) add_filled();
    for (const index_t r : packed.outside())
      std::copy(lines.row(r), lines.row(r) + p, panel.data() + filled++ * p);
  }
  add_filled();
  return sums;
}

// factor * sums + diagonal in float; the tiles of the sums are freed one by one.
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

// The entries of one tile in the packed triangle; for a diagonal tile, those on and below the
// diagonal.
template <class Entry>
void for_entries(index_t i_begin, index_t m, index_t j_begin, index_t n, Entry&& entry) {
  for (index_t i = 0; i < m; ++i) {
    const index_t row = i_begin + i, start = row * (row + 1) / 2 + j_begin;
    const index_t end = i_begin == j_begin ? i + 1 : n;
    for (index_t j = 0; j < end; ++j) entry(start + j, j * m + i, row == j_begin + j);
  }
}

// factor * gram + diagonal in float, by tiles.
TiledLower<float> unpacked(VectorView<const double> gram, double factor,
                           VectorView<const double> diagonal, int n_threads) {
  TiledLower<float> out(diagonal.size);
  for_blocks(out.tiles() * (out.tiles() + 1) / 2, n_threads, [&](index_t b, int) {
    const TileIndex at = lower_tile(b);
    const index_t m = out.size(at.i), n = out.size(at.j);
    AlignedBuffer<float> tile = AlignedBuffer<float>::zeros(m * n);
    for_entries(at.i * kTile, m, at.j * kTile, n, [&](index_t from, index_t to, bool on_diagonal) {
      const double added = on_diagonal ? diagonal[at.i * kTile + to % m] : 0.0;
      tile[to] = static_cast<float>(factor * gram[from] + added);
    });
    out.buffer(at.i, at.j) = std::move(tile);
  });
  return out;
}

// With a panel of few tiles, packing takes longer than it saves.
bool in_bytes(Metric::Products products, index_t p) {
  return products == Metric::Products::coarse && has_four_products() && p > 2 * kTile;
}

class TiledMetric final : public Metric {
 public:
  TiledMetric(TiledLower<float> factor, bool positive, VectorView<const double> scale)
      : factor_(std::move(factor)),
        positive_(positive),
        scale_(scale.data, scale.data + scale.size) {
    if (positive_) invert_diagonal_tiles(factor_);
  }

  bool positive() const override { return positive_; }
  index_t order() const override { return factor_.order(); }

  void solve(MatrixView<const double> b, MatrixView<double> out, int n_threads) const override {
    check_solve(*this, b, out);
    const index_t p = order(), k = b.cols;
    double largest = 0.0;
    for (index_t i = 0; i < p; ++i) {
      for (index_t c = 0; c < k; ++c) largest = std::max(largest, std::abs(scale_[i] * b(i, c)));
    }
    const double unit = largest > 0.0 ? largest : 1.0;
    solve_scaled<float, double>(
        factor_, b, [&](index_t i) { return scale_[i] / unit; },
        [&](index_t i) { return scale_[i] * unit; }, out, n_threads);
  }

 private:
  TiledLower<float> factor_;
  bool positive_;
  Vector<double> scale_;
};

}  // namespace

template <class T>
std::unique_ptr<Metric> Metric::make(const FeatureRows<T>& features,
                                     VectorView<const double> weights,
                                     VectorView<const double> scale,
                                     VectorView<const double> diagonal, double factor,
                                     Products products, int n_threads) {
  check_metric(features, weights, scale, diagonal);
  const double n = static_cast<double>(features.rows());
  const double order = static_cast<double>(features.cols());
  const int threads = threads_for(order * order * (n + order), n_threads);
  const bool bytes = in_bytes(products, features.cols());
  TiledLower<double> sums = tiled_gram(features, weights, scale, bytes, threads);
  TiledLower<float> matrix = in_float(sums, factor, diagonal, threads);
  const bool positive = factorise_tiles(matrix, threads);
  return std::make_unique<TiledMetric>(std::move(matrix), positive, scale);
}

std::unique_ptr<Metric> Metric::from_gram(VectorView<const double> gram,
                                          VectorView<const double> scale,
                                          VectorView<const double> diagonal, double factor,
                                          int n_threads) {
  const index_t p = scale.size;
  check_gram(gram.size, p);
  require(diagonal.size == p, "diagonal", std::to_string(p) + " entries",
          std::to_string(diagonal.size));
  const double order = static_cast<double>(p);
  const int threads = threads_for(order * order * order, n_threads);
  TiledLower<float> matrix = unpacked(gram, factor, diagonal, threads);
  const bool positive = factorise_tiles(matrix, threads);
  return std::make_unique<TiledMetric>(std::move(matrix), positive, scale);
}

template <class T>
void scaled_gram(const FeatureRows<T>& features, VectorView<const double> weights,
                 VectorView<const double> scale, Metric::Products products, VectorView<double> gram,
                 int n_threads) {
  check_metric(features, weights, scale, scale);
  const index_t p = features.cols();
  check_gram(gram.size, p);
  const double order = static_cast<double>(p);
  const int threads = threads_for(order * order * static_cast<double>(features.rows()), n_threads);
  TiledLower<double> sums = tiled_gram(features, weights, scale, in_bytes(products, p), threads);
  for_blocks(sums.tiles() * (sums.tiles() + 1) / 2, threads, [&](index_t b, int) {
    const TileIndex at = lower_tile(b);
    const index_t m = sums.size(at.i), n = sums.size(at.j);
    const double* tile = sums.buffer(at.i, at.j).data();
    for_entries(at.i * kTile, m, at.j * kTile, n,
                [&](index_t to, index_t from, bool) { gram[to] = tile[from]; });
  });
}

template void scaled_gram<float>(const FeatureRows<float>&, VectorView<const double>,
                                 VectorView<const double>, Metric::Products, VectorView<double>,
                                 int);
template void scaled_gram<double>(const FeatureRows<double>&, VectorView<const double>,
                                  VectorView<const double>, Metric::Products, VectorView<double>,
                                  int);

template std::unique_ptr<Metric> Metric::make<float>(const FeatureRows<float>&,
                                                     VectorView<const double>,
                                                     VectorView<const double>,
                                                     VectorView<const double>, double, Products,
                                                     int);
template std::unique_ptr<Metric> Metric::make<double>(const FeatureRows<double>&,
                                                      VectorView<const double>,
                                                      VectorView<const double>,
                                                      VectorView<const double>, double, Products,
                                                      int);

}  // namespace eigenfeat
