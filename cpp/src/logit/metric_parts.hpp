// Private to the metrics: panels of scaled features, and checks of arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "base/tile_products.hpp"
#include "base/tiled_lower.hpp"
#include "eigenfeat/logit.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "expansion/feature_groups.hpp"

namespace eigenfeat {

inline constexpr index_t kTile = TiledLower<float>::kTile;

// Rows of a panel of the Gram matrix: enough that adding a product to the sums takes little time,
// and few enough that the panel takes about 64 MB.
inline index_t gram_panel_rows(index_t p) {
  const index_t fitting = static_cast<index_t>(16e6) / std::max<index_t>(p, 1);
  return std::clamp<index_t>(fitting / 256 * 256, 256, 2048);
}

// panel (end - begin, p) row-major <- sqrt(weight) scale phi
template <class Out, class T>
void fill_panel(const FeatureRows<T>& features, VectorView<const double> weights,
                VectorView<const double> scale, index_t begin, index_t end,
                PerThread<TileScratch<T>>& scratch, MatrixView<Out> panel, int n_threads) {
  const index_t p = features.cols(), varying = features.varying();
  const Groups groups = Groups::of<T>(features.rows(), p, 1);
  for_ranges(end - begin, groups.tile, n_threads, [&](index_t first, index_t last, int thread) {
    const MatrixView<const T> tile =
        load_tile(features, begin + first, begin + last, scratch[thread]);
    for (index_t r = 0; r < tile.rows; ++r) {
      const double root = weights.empty() ? 1.0 : std::sqrt(weights[begin + first + r]);
      Out* out = panel.row(first + r);
      const T* in = tile.row(r);
      for (index_t c = 0; c < varying; ++c)
        out[c] = static_cast<Out>(root * scale[c] * static_cast<double>(in[c]));
      if (features.constant) out[varying] = static_cast<Out>(root * scale[varying]);
    }
  });
}

template <class T>
void check_metric(const FeatureRows<T>& features, VectorView<const double> weights,
                  VectorView<const double> scale, VectorView<const double> diagonal) {
  features.check();
  const index_t p = features.cols();
  require(scale.size == p, "scale", std::to_string(p) + " entries", std::to_string(scale.size));
  require(diagonal.size == p, "diagonal", std::to_string(p) + " entries",
          std::to_string(diagonal.size));
  require(weights.empty() || weights.size == features.rows(), "weights",
          std::to_string(features.rows()) + " entries", std::to_string(weights.size));
}

inline void check_gram(index_t size, index_t p) {
  require(p >= 1 && size == p * (p + 1) / 2, "gram", std::to_string(p * (p + 1) / 2) + " entries",
          std::to_string(size));
}

inline void check_solve(const Metric& metric, MatrixView<const double> b, MatrixView<double> out) {
  const index_t p = metric.order();
  require(metric.positive(), "metric", "a positive definite matrix", "a nonpositive pivot");
  require(b.rows == p && b.is_row_major(), "b", std::to_string(p) + " rows",
          std::to_string(b.rows));
  require(out.rows == p && out.cols == b.cols && out.is_row_major(), "out",
          "the shape of b, " + shape_text(p, b.cols), shape_text(out));
}

// out <- diag(after) (L L^T)^-1 diag(before) in, for the tiles of L; `in` and `out` may be one array.
template <class Entry, class T, class Before, class After>
void solve_scaled(const TiledLower<Entry>& factor, MatrixView<const T> in, Before&& before,
                  After&& after, MatrixView<T> out, int n_threads) {
  const index_t n = in.rows, k = in.cols, width = padded_width<Entry>(k);
  // A solve starts two parallel regions for each tile; each must have enough work.
  const double work = static_cast<double>(n) * static_cast<double>(n * width) / 8.0;
  AlignedBuffer<Entry> x = AlignedBuffer<Entry>::zeros(std::max<index_t>(n * width, 1));
  for (index_t i = 0; i < n; ++i) {
    const double scale = before(i);
    for (index_t c = 0; c < k; ++c) {
      x[i * width + c] = static_cast<Entry>(scale * static_cast<double>(in(i, c)));
    }
  }
  solve_tiles(factor, x.data(), width, k, threads_for(work, n_threads));
  for (index_t i = 0; i < n; ++i) {
    const double scale = after(i);
    for (index_t c = 0; c < k; ++c) {
      out(i, c) = static_cast<T>(scale * static_cast<double>(x[i * width + c]));
    }
  }
}

}  // namespace eigenfeat
