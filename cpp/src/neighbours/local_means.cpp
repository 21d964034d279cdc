#include "eigenfeat/local_means.hpp"

#include <algorithm>
#include <string>

#include "base/class_order.hpp"
#include "base/tiled_lower.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/row_kernels.hpp"
#include "neighbours/local_pairs.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kPanelBytes = index_t{1} << 23;  // bytes of a panel of rows
constexpr index_t kChunk = 32;                     // queries whose rows a task writes

template <class T>
index_t panel_rows(index_t d) {
  const index_t fit = kPanelBytes / (static_cast<index_t>(sizeof(T)) * std::max<index_t>(d, 1));
  return std::clamp<index_t>(fit, 256, 4096);
}

// Writes the rows D_ij of queries list[begin..end) for the classes for which `use` is true.
template <class T, class Use>
void write_panel(const PairRows<T>& rows, const index_t* queries, index_t n_queries,
                 index_t rows_per_query, const Vector<T>& factors, Use use, T* panel,
                 PerThread<Vector<const T*>>& scratch, int n_threads) {
  const index_t d = rows.d();
  for_ranges(n_queries, kChunk, n_threads, [&](index_t begin, index_t end, int thread) {
    auto& pointers = scratch[thread];
    pointers.resize(rows.pairs().n_neighbors);
    // Class by class, so that the rows of a class stay in the cache.
    index_t written[kChunk] = {};
    for (index_t c = 0; c < rows.classes(); ++c) {
      for (index_t q = begin; q < end; ++q) {
        if (!use(queries[q], c)) continue;
        T* out = panel + (q * rows_per_query + written[q - begin]++) * d;
        rows.difference(queries[q], c, factors[c], 0, d, pointers.data(), out);
      }
    }
  });
}

void mirror(MatrixView<double> a) {
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < i; ++j) a(j, i) = a(i, j);
  }
}

void clear(MatrixView<double> a) {
  for (index_t i = 0; i < a.rows; ++i) std::fill(a.row(i), a.row(i) + a.cols, 0.0);
}

}  // namespace

template <class T>
void TileSums<T>::add(MatrixView<const T> panel, const double* inverse_scale,
                      const Vector<Target>& targets) {
  const MatrixView<const T> columns = panel.transposed();
  for_blocks(tiles_ * (tiles_ + 1) / 2, n_threads_, [&](index_t b, int thread) {
    const TileIndex at = lower_tile(b);
    const index_t i0 = at.i * kTile, n_i = std::min(kTile, d_ - i0);
    const index_t j0 = at.j * kTile, n_j = std::min(kTile, d_ - j0);
    scratch_[thread].reserve(kTile * kTile);
    const MatrixView<T> product = column_major(scratch_[thread].data(), n_j, n_i);
    const auto left = columns.block(j0, 0, n_j, columns.cols);
    if (at.i == at.j) {
      syrk<T>(Triangle::upper, Op::none, T(1), left, T(0), product);
    } else {
      gemm<T>(Op::none, Op::transpose, T(1), left, columns.block(i0, 0, n_i, columns.cols), T(0),
              product);
    }
    for (const Target& target : targets) add_tile(i0, j0, product, inverse_scale, target);
  });
}

template <class T>
void TileSums<T>::add_product(MatrixView<const T> left, MatrixView<const T> right, index_t first,
                              const double* inverse_scale, const Target& target) {
  const MatrixView<const T> a = left.transposed(), b = right.transposed();
  const index_t tile_rows = tiles_ - first / kTile;
  const index_t tile_columns = (right.cols + kTile - 1) / kTile;
  for_blocks(tile_rows * tile_columns, n_threads_, [&](index_t block, int thread) {
    const index_t i0 = first + block / tile_columns * kTile, n_i = std::min(kTile, d_ - i0);
    const index_t j = block % tile_columns * kTile, n_j = std::min(kTile, right.cols - j);
    if (first + j > i0) return;
    scratch_[thread].reserve(kTile * kTile);
    const MatrixView<T> product = column_major(scratch_[thread].data(), n_j, n_i);
    gemm<T>(Op::none, Op::transpose, T(1), b.block(j, 0, n_j, b.cols), a.block(i0, 0, n_i, a.cols),
            T(0), product);
    add_tile(i0, first + j, product, inverse_scale, target);
  });
}

// product(j, i) is the entry of row i0 + i and column j0 + j.
template <class T>
void TileSums<T>::add_tile(index_t i0, index_t j0, MatrixView<const T> product,
                           const double* inverse_scale, const Target& target) const {
  for (index_t i = 0; i < product.cols; ++i) {
    const index_t n = i0 == j0 ? i + 1 : product.rows;
    kernels<RowKernels<T>>().add_scaled(product.col(i), n, inverse_scale + j0,
                                        target.factor * inverse_scale[i0 + i],
                                        target.sum.row(i0 + i) + j0);
  }
}

// First the rows D_ij for the own classes of the queries, class by class: their products are added
// to V, and p_g times to A. Then the rows for other classes, times sqrt(p_j), are added to A.
template <class T>
void scatters_by_rows(const PairRows<T>& rows, VectorView<const double> priors, bool with_weighted,
                      MatrixView<double> within, MatrixView<double> weighted, int n_threads) {
  const index_t d = rows.d(), most = panel_rows<T>(d), classes = rows.classes();
  AlignedBuffer<T> panel(std::max(most, classes) * d);
  PerThread<Vector<const T*>> scratch(n_threads);
  TileSums<T> sums(d, n_threads);
  const ClassOrder order(rows.pairs().query_codes, classes);
  Vector<T> factors(classes, T(1));
  for (const RowRange& range : cut_classes(order, most)) {
    write_panel(
        rows, order.rows.data() + range.begin, range.end - range.begin, 1, factors,
        [&](index_t, index_t c) { return c == range.c; }, panel.data(), scratch, n_threads);
    Vector<typename TileSums<T>::Target> targets{{within, 1.0}};
    if (with_weighted) targets.push_back({weighted, priors[range.c]});
    sums.add(row_major<const T>(panel.data(), range.end - range.begin, d), rows.inverse_scale(),
             targets);
  }
  if (!with_weighted || classes == 1) return;
  for (index_t c = 0; c < classes; ++c) factors[c] = static_cast<T>(std::sqrt(priors[c]));
  const index_t n = rows.queries(), width = std::max<index_t>(1, most / (classes - 1));
  for (index_t begin = 0; begin < n; begin += width) {
    const index_t count = std::min(width, n - begin);
    write_panel(
        rows, order.rows.data() + begin, count, classes - 1, factors,
        [&](index_t i, index_t c) { return c != rows.own_class(i); }, panel.data(), scratch,
        n_threads);
    sums.add(row_major<const T>(panel.data(), count * (classes - 1), d), rows.inverse_scale(),
             {{weighted, 1.0}});
  }
}

ScatterMethod choose_scatter_method(index_t d, index_t n_classes, index_t n_neighbors) {
  // In units of a flop of gemm; adding a number to a row in the cache takes as long as about 12
  // flops.
  constexpr double addition = 12.0;
  const double width = static_cast<double>(d), classes = static_cast<double>(n_classes);
  const double scattered = classes * static_cast<double>(n_neighbors) * addition;
  return (classes - 1.0) * width > 2.0 * width + scattered ? ScatterMethod::graph
                                                           : ScatterMethod::rows;
}

template <class T>
void check_neighbours(const LocalPairs<T>& pairs) {
  const index_t expected = pairs.queries.rows * pairs.n_classes * pairs.n_neighbors;
  require(pairs.neighbours.size == expected, "neighbours",
          "shape (queries, classes, neighbours), " + std::to_string(expected) + " numbers",
          std::to_string(pairs.neighbours.size));
  for (index_t i = 0; i < pairs.neighbours.size; ++i) {
    if (!(pairs.neighbours[i] >= -1 && pairs.neighbours[i] < pairs.references.rows))
      refuse("neighbours", "numbers of samples or -1", std::to_string(pairs.neighbours[i]));
  }
}

template <class T>
void local_scatters(const LocalPairs<T>& pairs, VectorView<const double> priors,
                    ScatterMethod method, MatrixView<double> within, MatrixView<double> weighted,
                    int n_threads) {
  const index_t d = pairs.references.cols, m = pairs.queries.rows;
  require(pairs.queries.cols == d, "queries", std::to_string(d) + " columns",
          std::to_string(pairs.queries.cols));
  require(pairs.query_codes.size == m, "query_codes", std::to_string(m) + " codes, one per sample",
          std::to_string(pairs.query_codes.size));
  require(priors.size == pairs.n_classes, "priors", std::to_string(pairs.n_classes) + " numbers",
          std::to_string(priors.size));
  for (index_t i = 0; i < m; ++i) {
    if (!(pairs.query_codes[i] >= 0 && pairs.query_codes[i] < pairs.n_classes))
      refuse("query_codes", "class indices in [0, " + std::to_string(pairs.n_classes) + ")",
             std::to_string(pairs.query_codes[i]) + " in row " + std::to_string(i));
  }
  check_neighbours(pairs);
  if (method == ScatterMethod::automatic)
    method = choose_scatter_method(d, pairs.n_classes, pairs.n_neighbors);
  const double work = static_cast<double>(m) * static_cast<double>(pairs.n_classes) *
                      static_cast<double>(d) * static_cast<double>(d + pairs.n_neighbors);
  const int threads = threads_for(work, n_threads);
  clear(within);
  clear(weighted);
  const PairRows<T> rows(pairs, threads);
  scatters_by_rows(rows, priors, method == ScatterMethod::rows, within, weighted, threads);
  if (method == ScatterMethod::graph) weighted_by_graph(rows, priors, weighted, threads);
  mirror(within);
  mirror(weighted);
}

template void check_neighbours<float>(const LocalPairs<float>&);
template void check_neighbours<double>(const LocalPairs<double>&);
template class TileSums<float>;
template class TileSums<double>;
template void local_scatters<float>(const LocalPairs<float>&, VectorView<const double>,
                                    ScatterMethod, MatrixView<double>, MatrixView<double>, int);
template void local_scatters<double>(const LocalPairs<double>&, VectorView<const double>,
                                     ScatterMethod, MatrixView<double>, MatrixView<double>, int);

}  // namespace eigenfeat
