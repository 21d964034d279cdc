#include "eigenfeat/features.hpp"

#include <algorithm>
#include <string>

#include "base/csr.hpp"
#include "base/shape_text.hpp"
#include "base/tile_products.hpp"
#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "expansion/feature_groups.hpp"
#include "expansion/projection.hpp"

namespace eigenfeat {

template <class T>
index_t FeatureRows<T>::rows() const {
  if (projections.data != nullptr) return projections.rows;
  return sparse.indptr != nullptr ? sparse.rows : dense.rows;
}

template <class T>
index_t FeatureRows<T>::cols() const {
  const index_t inputs = sparse.indptr != nullptr ? sparse.cols : dense.cols;
  const index_t count = projections.data != nullptr ? projections.cols : directions.cols;
  return (expanded ? expanded_columns(expansion, inputs, count) : inputs) + (constant ? 1 : 0);
}

template <class T>
void FeatureRows<T>::check() const {
  const bool is_sparse = sparse.indptr != nullptr, stored = projections.data != nullptr;
  require(!(is_sparse && dense.data != nullptr), "X", "dense or sparse samples", "both");
  require(dense.data == nullptr || dense.is_row_major(), "X", "row-major storage",
          shape_text(dense));
  require(!stored || projections.is_row_major(), "projections", "row-major storage",
          shape_text(projections));
  if (is_sparse) check_csr(sparse);
  const index_t inputs = is_sparse ? sparse.cols : dense.cols;
  if (!expanded) {
    require(!stored && directions.data == nullptr, "directions", "none without an expansion",
            stored ? shape_text(projections) : shape_text(directions));
    return;
  }
  check_powers(expansion);
  const index_t n = is_sparse ? sparse.rows : dense.rows;
  const bool has_rows = is_sparse || dense.data != nullptr;
  require(has_rows || (stored && !expansion.include_input), "X",
          "samples, which the expansion needs", "none");
  require(!stored || !has_rows || projections.rows == n, "projections", std::to_string(n) + " rows",
          std::to_string(projections.rows));
  require(stored || (directions.rows == inputs && directions.is_row_major()), "directions",
          "a row-major matrix of " + std::to_string(inputs) + " rows",
          std::to_string(directions.rows));
  require(stored || offset.empty() || offset.size == directions.cols, "offset",
          std::to_string(directions.cols) + " entries", std::to_string(offset.size));
}

namespace {

template <class T>
MatrixView<const T> load_projections(const FeatureRows<T>& features, index_t begin, index_t end,
                                     TileScratch<T>& scratch) {
  const index_t rows = end - begin;
  if (features.projections.data != nullptr)
    return features.projections.block(begin, 0, rows, features.projections.cols);
  const index_t n_directions = features.directions.cols;
  scratch.projections.reserve(rows * n_directions);
  const MatrixView<T> p = row_major(scratch.projections.data(), rows, n_directions);
  if (n_directions == 0) return p;
  if (features.sparse.indptr != nullptr) {
    project(features.sparse, begin, features.directions, features.offset, p);
  } else {
    project(features.dense, begin, features.directions, features.offset, p);
  }
  return p;
}

template <class T>
WaveTile<T> load_waves(const FeatureRows<T>& features, index_t begin, index_t end,
                       TileScratch<T>& scratch) {
  const MatrixView<const T> p = load_projections(features, begin, end, scratch);
  const index_t lines = wave_lines<T>(p.cols);
  scratch.packed.reserve(lines * p.rows * wave_unit<T>());
  pack_projections(p, scratch.packed.data());
  return {scratch.packed.data(), p.rows, lines, features.expansion.wave == Wave::shifted};
}

template <class T>
void copy_input(const FeatureRows<T>& features, index_t i, T* out) {
  if (features.sparse.indptr != nullptr) {
    copy_row(features.sparse, i, out);
  } else {
    copy_row(features.dense, i, out);
  }
}

template <class T>
void expand_tile(const FeatureRows<T>& features, index_t begin, MatrixView<const T> p,
                 MatrixView<T> out) {
  const Expansion& expansion = features.expansion;
  const index_t inputs =
      features.sparse.indptr != nullptr ? features.sparse.cols : features.dense.cols;
  const index_t first = expansion.include_input ? inputs : 0;
  for (index_t r = 0; r < p.rows; ++r) {
    if (first > 0) copy_input(features, begin + r, out.row(r));
    if (expansion.wave == Wave::none) {
      std::copy(p.row(r), p.row(r) + p.cols, out.row(r) + first);
    } else {
      kernels<WaveKernels<T>>().expand_row(expansion.wave, expansion.powers.data(),
                                           expansion.powers.size(), p.row(r), p.cols,
                                           out.row(r) + first);
    }
  }
}

// sum, square += weight phi, weight phi^2 over a range of rows, without the constant
template <class T>
void add_tile_squares(const FeatureRows<T>& features, const NarrowLayout<T>& layout,
                      VectorView<const double> weights, index_t begin, index_t end,
                      TileScratch<T>& scratch, double* sum, double* square) {
  if (layout.waves()) {
    const WaveTile<T> tile = load_waves(features, begin, end, scratch);
    const double* first = weights.empty() ? nullptr : &weights[begin];
    kernels<WaveProductKernels<T>>().squares(tile, layout.directions, first, sum, square);
    return;
  }
  const MatrixView<const T> tile = load_tile(features, begin, end, scratch);
  for (index_t r = 0; r < tile.rows; ++r) {
    const double weight = weights.empty() ? 1.0 : weights[begin + r];
    kernels<VectorKernels<T>>().add_weighted_squares(tile.row(r), tile.cols, weight, sum, square);
  }
}

}  // namespace

template <class T>
MatrixView<const T> load_tile(const FeatureRows<T>& features, index_t begin, index_t end,
                              TileScratch<T>& scratch) {
  const index_t rows = end - begin, columns = features.varying();
  if (!features.expanded && features.sparse.indptr == nullptr)
    return features.dense.block(begin, 0, rows, columns);
  scratch.features.reserve(rows * columns);
  const MatrixView<T> tile = row_major(scratch.features.data(), rows, columns);
  if (features.expanded) {
    expand_tile(features, begin, load_projections(features, begin, end, scratch), tile);
  } else {
    for (index_t r = 0; r < rows; ++r) copy_row(features.sparse, begin + r, tile.row(r));
  }
  return tile;
}

template <class T>
void LoadedTile<T>::load(const FeatureRows<T>& features, const NarrowLayout<T>& narrow,
                         index_t first, index_t last, TileScratch<T>& memory) {
  source = &features;
  layout = &narrow;
  scratch = &memory;
  begin = first;
  rows = last - first;
  if (layout->waves()) {
    waves = load_waves(features, first, last, memory);
    return;
  }
  direct = features.expanded || features.sparse.indptr == nullptr;
  if (direct) tile = load_tile(features, first, last, memory);
}

template <class T>
void LoadedTile<T>::scores(const T* w, T* z) const {
  const index_t varying = source->varying(), width = layout->width;
  std::fill(z, z + rows * width, T(0));
  if (source->constant) {
    const T* constant = w + layout->index(varying, 0);
    for (index_t r = 0; r < rows; ++r) std::copy(constant, constant + layout->k, z + r * width);
  }
  if (layout->waves()) {
    scratch->lines.reserve(rows * layout->k * wave_unit<T>());
    kernels<WaveProductKernels<T>>().scores(waves, w, layout->k, width, scratch->lines.data(), z);
    return;
  }
  if (direct) {
    add_scores<T>(tile, w, width, layout->k, z);
    return;
  }
  const CsrView<T>& x = source->sparse;
  for (index_t r = 0; r < rows; ++r) {
    for (index_t q = x.indptr[begin + r]; q < x.indptr[begin + r + 1]; ++q)
      add_multiple(x.values[q], w + x.indices[q] * width, width, z + r * width);
  }
}

template <class T>
void LoadedTile<T>::products(const T* residuals, T* g) const {
  const index_t varying = source->varying(), width = layout->width;
  if (source->constant) {
    for (index_t r = 0; r < rows; ++r)
      add_multiple(T(1), residuals + r * width, layout->k, g + layout->index(varying, 0));
  }
  if (layout->waves()) {
    kernels<WaveProductKernels<T>>().products(waves, residuals, layout->k, width, g);
    return;
  }
  if (direct) {
    add_products<T>(tile, residuals, width, layout->k, g);
    return;
  }
  const CsrView<T>& x = source->sparse;
  for (index_t r = 0; r < rows; ++r) {
    for (index_t q = x.indptr[begin + r]; q < x.indptr[begin + r + 1]; ++q)
      add_multiple(x.values[q], residuals + r * width, width, g + x.indices[q] * width);
  }
}

namespace {

// w: in the layout of narrow matrices
template <class T>
void scores_of(const FeatureRows<T>& features, const NarrowLayout<T>& layout,
               const AlignedBuffer<T>& w, MatrixView<T> out, int n_threads) {
  const index_t n = features.rows(), k = layout.k;
  require(out.rows == n && out.cols == k && out.is_row_major(), "out",
          "one row for each feature row", std::to_string(out.rows) + " rows");
  const Groups groups = layout.groups(n);
  const int threads = threads_for(product_work(features, k), n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  for_ranges(n, groups.tile, threads, [&](index_t begin, index_t end, int thread) {
    TileScratch<T>& mine = scratch[thread];
    LoadedTile<T> tile;
    tile.load(features, layout, begin, end, mine);
    mine.scores.reserve(std::min(groups.tile, n) * layout.width);
    tile.scores(w.data(), mine.scores.data());
    for (index_t r = 0; r < end - begin; ++r) {
      const T* z = mine.scores.data() + r * layout.width;
      std::copy(z, z + k, out.row(begin + r));
    }
  });
}

}  // namespace

template <class T>
void feature_scores(const FeatureRows<T>& features, MatrixView<const T> coefficients,
                    MatrixView<T> out, int n_threads) {
  features.check();
  const index_t p = features.cols();
  require(coefficients.rows == p && coefficients.is_row_major(), "coefficients",
          std::to_string(p) + " rows", std::to_string(coefficients.rows));
  const NarrowLayout<T> layout(features, coefficients.cols);
  scores_of(features, layout, layout.laid_out(coefficients), out, n_threads);
}

template <class T>
void class_scores(const FeatureRows<T>& features, MatrixView<const double> weights,
                  VectorView<const double> constants, MatrixView<T> out, int n_threads) {
  features.check();
  const index_t varying = features.varying(), k = weights.rows;
  require(weights.cols == varying, "weights", std::to_string(varying) + " columns",
          std::to_string(weights.cols));
  require(constants.size == (features.constant ? k : 0), "constants",
          std::to_string(features.constant ? k : 0) + " entries", std::to_string(constants.size));
  const NarrowLayout<T> layout(features, k);
  AlignedBuffer<T> w = layout.laid_out_rows(weights);
  for (index_t c = 0; c < constants.size; ++c)
    w[layout.index(varying, c)] = static_cast<T>(constants[c]);
  scores_of(features, layout, w, out, n_threads);
}

template <class T>
void feature_products(const FeatureRows<T>& features, MatrixView<const T> residuals,
                      MatrixView<double> out, int n_threads) {
  features.check();
  const index_t n = features.rows(), p = features.cols(), k = residuals.cols;
  require(residuals.rows == n && residuals.is_row_major(), "residuals", std::to_string(n) + " rows",
          std::to_string(residuals.rows));
  require(out.rows == p && out.cols == k && out.is_row_major(), "out", std::to_string(p) + " rows",
          std::to_string(out.rows));
  const NarrowLayout<T> layout(features, k);
  sum_over_groups<T>(features, layout, out, n_threads,
                     [&](const LoadedTile<T>& tile, TileScratch<T>& scratch, T* g) {
                       scratch.scores.reserve(tile.rows * layout.width);
                       T* r = scratch.scores.data();
                       copy_padded(residuals.block(tile.begin, 0, tile.rows, k), layout.width, r);
                       tile.products(r, g);
                     });
}

template <class T>
void feature_sums(const FeatureRows<T>& features, VectorView<const double> weights,
                  VectorView<double> sums, VectorView<double> squares, int n_threads) {
  features.check();
  const index_t n = features.rows(), p = features.cols(), varying = features.varying();
  require(weights.empty() || weights.size == n, "weights", std::to_string(n) + " entries",
          std::to_string(weights.size));
  require(sums.size == p && squares.size == p, "sums", std::to_string(p) + " entries",
          std::to_string(sums.size));
  const NarrowLayout<T> layout(features, 2);
  const Groups groups = layout.groups(n);
  AlignedBuffer<double> partial = AlignedBuffer<double>::zeros(groups.count * 2 * p);
  const int threads = threads_for(product_work(features, 2), n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  for_blocks(groups.count, threads, [&](index_t group, int thread) {
    double* sum = partial.data() + group * 2 * p;
    double* square = sum + p;
    groups.for_tiles(group, [&](index_t begin, index_t end) {
      add_tile_squares(features, layout, weights, begin, end, scratch[thread], sum, square);
      for (index_t i = begin; features.constant && i < end; ++i) {
        const double weight = weights.empty() ? 1.0 : weights[i];
        sum[varying] += weight;
        square[varying] += weight;
      }
    });
  });
  std::fill(sums.data, sums.data + p, 0.0);
  std::fill(squares.data, squares.data + p, 0.0);
  for (index_t group = 0; group < groups.count; ++group) {
    const double* sum = partial.data() + group * 2 * p;
    for (index_t c = 0; c < p; ++c) {
      sums[c] += sum[c];
      squares[c] += sum[p + c];
    }
  }
}

#define EIGENFEAT_INSTANTIATE(T)                                                                   \
  template struct FeatureRows<T>;                                                                  \
  template struct LoadedTile<T>;                                                                   \
  template MatrixView<const T> load_tile<T>(const FeatureRows<T>&, index_t, index_t,               \
                                            TileScratch<T>&);                                      \
  template void feature_scores<T>(const FeatureRows<T>&, MatrixView<const T>, MatrixView<T>, int); \
  template void class_scores<T>(const FeatureRows<T>&, MatrixView<const double>,                   \
                                VectorView<const double>, MatrixView<T>, int);                     \
  template void feature_products<T>(const FeatureRows<T>&, MatrixView<const T>,                    \
                                    MatrixView<double>, int);                                      \
  template void feature_sums<T>(const FeatureRows<T>&, VectorView<const double>,                   \
                                VectorView<double>, VectorView<double>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
