// Private to the linear models: division of passes over feature rows, and merging of sums.
//
// A tile has a number of rows whose features stay in the second-level cache; a group is a run of
// tiles with a separate sum. Both depend on n, p and k alone. Sums of a group are T over at most
// kFlush rows; these sums are added in double.
#pragma once

#include <algorithm>

#include "base/tile_products.hpp"
#include "eigenfeat/features.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "expansion/wave_products.hpp"
#include "kernels/line.hpp"
#include "kernels/vector_kernels.hpp"

namespace eigenfeat {

// Rows whose products are summed in the type of the features.
inline constexpr index_t kFlush = 4096;

struct Groups {
  index_t n = 0;
  index_t tile = 0;   // rows of a tile
  index_t run = 0;    // tiles of a group
  index_t count = 0;  // groups

  // rows_of_tile: 0 for the number of rows whose features fit the second-level cache
  template <class T>
  static Groups of(index_t n, index_t p, index_t k, index_t rows_of_tile = 0) {
    constexpr index_t fewest_groups = 16, most_groups = 64;
    constexpr double tile_bytes = 768e3, sum_bytes = 16e6;
    const double columns = static_cast<double>(std::max<index_t>(p, 1));
    Groups groups;
    groups.n = n;
    const index_t fitting = static_cast<index_t>(tile_bytes / (columns * sizeof(T))) / 12 * 12;
    groups.tile = rows_of_tile > 0 ? rows_of_tile : std::clamp<index_t>(fitting, 24, 240);
    const double per_group = columns * sizeof(double) * static_cast<double>(k);
    const index_t affordable = std::clamp<index_t>(
        static_cast<index_t>(sum_bytes / std::max(per_group, 1.0)), fewest_groups, most_groups);
    // The sums of a group are written and read about four times. With few samples, the number of
    // groups is limited so that sums take at most a quarter of the time of the features.
    const index_t repaid = std::max(n / (16 * k + 1), fewest_groups);
    const index_t tiles = (n + groups.tile - 1) / groups.tile;
    const index_t most = std::min(affordable, repaid);
    groups.run = std::max<index_t>((tiles + most - 1) / most, 1);
    groups.count = (tiles + groups.run - 1) / groups.run;
    return groups;
  }

  template <class F>
  void for_tiles(index_t group, F&& f) const {
    const index_t last = std::min(n, (group + 1) * run * tile);
    for (index_t begin = group * run * tile; begin < last; begin += tile)
      f(begin, std::min(begin + tile, last));
  }
};

// Layout of a narrow matrix (p, k) for products with features, and division of the features.
template <class T>
struct NarrowLayout {
  index_t p = 0;
  index_t k = 0;
  index_t width = 0;       // padded columns of scores and residuals
  index_t directions = 0;  // number of directions if waves are multiplied directly, else 0

  NarrowLayout(const FeatureRows<T>& features, index_t columns)
      : p(features.cols()), k(columns), width(padded_width<T>(columns)) {
    if (!has_wave_products(features, k)) return;
    directions =
        (features.projections.data != nullptr ? features.projections : features.directions).cols;
  }
  bool waves() const { return directions > 0; }
  Groups groups(index_t n) const { return Groups::of<T>(n, p, k, waves() ? kWaveRows : 0); }
  // The row of the constant is last.
  index_t size() const { return waves() ? constant() + k : p * width; }
  index_t constant() const { return wave_lines<T>(directions) * kWaves * k * wave_unit<T>(); }
  index_t index(index_t i, index_t c) const {
    if (!waves()) return i * width + c;
    if (i == kWaves * directions) return constant() + c;
    return wave_index<T>(directions, k, i, c);
  }
  // index(i, c + 1) - index(i, c)
  index_t step(index_t i) const { return waves() && i < kWaves * directions ? wave_unit<T>() : 1; }
  // narrow: (m, k) with any strides, with or without the row of the constant.
  template <class U>
  AlignedBuffer<T> laid_out(MatrixView<const U> narrow) const {
    AlignedBuffer<T> out(std::max<index_t>(size(), 1));
    std::fill(out.data(), out.data() + size(), T(0));
    for (index_t i = waves() ? kWaves * directions : 0; i < narrow.rows; ++i) {
      for (index_t c = 0; c < k; ++c) out[index(i, c)] = static_cast<T>(narrow(i, c));
    }
    if (!waves()) return out;
    const index_t unit = wave_unit<T>();
    for (index_t first = 0; first < directions; first += unit) {
      const index_t count = std::min(unit, directions - first);
      for (index_t q = 0; q < kWaves; ++q) {
        T* to = out.data() + (first * kWaves + q * unit) * k;
        for (index_t c = 0; c < k; ++c) {
          for (index_t l = 0; l < count; ++l)
            to[c * unit + l] = static_cast<T>(narrow(q * directions + first + l, c));
        }
      }
    }
    return out;
  }
  // Lays out the transpose of (k, m), a row for each class, without the constant.
  AlignedBuffer<T> laid_out_rows(MatrixView<const double> rows) const {
    if (!waves() || !rows.is_row_major()) return laid_out(rows.transposed());
    AlignedBuffer<T> out(size());
    const index_t unit = wave_unit<T>();
    for (index_t first = 0; first < directions; first += unit) {
      const index_t count = std::min(unit, directions - first);
      for (index_t q = 0; q < kWaves; ++q)
        kernels<WaveProductKernels<T>>().lay_out(rows.data + q * directions + first,
                                                 rows.row_stride, k, count,
                                                 out.data() + (first * kWaves + q * unit) * k);
    }
    return out;
  }
};

// One tile of features, loaded once and used for both products. Sparse features without an
// expansion are used in place; waves are computed during multiplication.
template <class T>
struct LoadedTile {
  const FeatureRows<T>* source = nullptr;
  const NarrowLayout<T>* layout = nullptr;
  TileScratch<T>* scratch = nullptr;
  index_t begin = 0;
  index_t rows = 0;
  bool direct = true;
  MatrixView<const T> tile;
  WaveTile<T> waves;

  void load(const FeatureRows<T>& features, const NarrowLayout<T>& narrow, index_t first,
            index_t last, TileScratch<T>& memory);
  // z (rows, width) <- Phi w, with w in this layout
  void scores(const T* w, T* z) const;
  // g, in this layout, += Phi^T residuals
  void products(const T* residuals, T* g) const;
};

// Approximate number of flops of a product with k columns.
template <class T>
double product_work(const FeatureRows<T>& features, index_t k) {
  const double n = static_cast<double>(features.rows());
  const double each = 2.0 * static_cast<double>(k) + 4.0;
  double work = n * static_cast<double>(features.cols()) * each;
  if (features.expanded && features.projections.data == nullptr)
    work += 2.0 * n * static_cast<double>(features.directions.rows * features.directions.cols);
  return work;
}

// out (rows, width) <- narrow (rows, k), padded with zeros
template <class T, class U>
void copy_padded(MatrixView<const U> narrow, index_t width, T* out) {
  for (index_t i = 0; i < narrow.rows; ++i) {
    T* row = out + i * width;
    for (index_t c = 0; c < narrow.cols; ++c) row[c] = static_cast<T>(narrow(i, c));
    std::fill(row + narrow.cols, row + width, T(0));
  }
}

// As sum_over_groups, with the sums of each group in type `Sum`. If kFlushed, sums of kFlush rows
// in T are added to the sums of the group.
template <class Sum, bool kFlushed, class T, class Add>
void sum_groups(const FeatureRows<T>& features, const NarrowLayout<T>& layout, const Groups& groups,
                MatrixView<double> out, int n_threads, Add&& add) {
  const index_t size = layout.size();
  // The sums of each group start on a 64-byte boundary, like narrow matrices.
  const index_t apart = (size + kLane<Sum> - 1) / kLane<Sum> * kLane<Sum>;
  const int threads = threads_for(2.0 * product_work(features, layout.k), n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  // NOLINTNEXTLINE(misc-const-correctness): changes if kFlushed
  PerThread<AlignedBuffer<T>> parts(threads);
  AlignedBuffer<Sum> sums(std::max<index_t>(groups.count, 1) * apart);
  if (groups.count == 0) std::fill(sums.data(), sums.data() + size, Sum(0));
  for_blocks(groups.count, threads, [&](index_t group, int thread) {
    Sum* sum = sums.data() + group * apart;
    std::fill(sum, sum + size, Sum(0));
    if constexpr (kFlushed) {
      if (parts[thread].empty()) parts[thread] = AlignedBuffer<T>::zeros(size);
    }
    // NOLINTNEXTLINE(misc-const-correctness): changes if kFlushed
    [[maybe_unused]] index_t since = 0;
    groups.for_tiles(group, [&](index_t begin, index_t end) {
      LoadedTile<T> tile;
      tile.load(features, layout, begin, end, scratch[thread]);
      if constexpr (kFlushed) {
        add(tile, scratch[thread], parts[thread].data());
        since += end - begin;
        if (since < kFlush) return;
        kernels<VectorKernels<T>>().flush(parts[thread].data(), size, sum);
        since = 0;
      } else {
        add(tile, scratch[thread], sum);
      }
    });
    if constexpr (kFlushed) kernels<VectorKernels<T>>().flush(parts[thread].data(), size, sum);
  });
  AlignedBuffer<double> totals(std::max<index_t>(size, 1));
  for_ranges(size, 4096, threads, [&](index_t begin, index_t end, int) {
    std::copy(sums.data() + begin, sums.data() + end, totals.data() + begin);
    for (index_t group = 1; group < groups.count; ++group) {
      const Sum* more = sums.data() + group * apart;
      for (index_t i = begin; i < end; ++i) totals[i] += static_cast<double>(more[i]);
    }
  });
  for (index_t i = 0; i < layout.p; ++i) {
    const double* first = totals.data() + layout.index(i, 0);
    const index_t step = layout.step(i);
    for (index_t c = 0; c < layout.k; ++c) out(i, c) = first[c * step];
  }
}

// out (p, k) <- sum over tiles of the matrices that add(tile, scratch, g) adds to g, in this layout
template <class T, class Add>
void sum_over_groups(const FeatureRows<T>& features, const NarrowLayout<T>& layout,
                     MatrixView<double> out, int n_threads, Add&& add) {
  const Groups groups = layout.groups(features.rows());
  if (groups.run * groups.tile <= kFlush) {
    sum_groups<T, false>(features, layout, groups, out, n_threads, add);
  } else {
    sum_groups<double, true>(features, layout, groups, out, n_threads, add);
  }
}

}  // namespace eigenfeat
