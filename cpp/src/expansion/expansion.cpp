#include "eigenfeat/expansion.hpp"

#include <algorithm>
#include <string>

#include "base/csr.hpp"
#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "expansion/projection.hpp"
#include "kernels/wave_kernels.hpp"

namespace eigenfeat {
namespace {

// Rows of a tile: enough for a fast gemm, and few enough to share small inputs among threads.
index_t tile_rows(index_t n) {
  return n >= 4096 ? 512 : 128;
}

}  // namespace

void check_powers(const Expansion& expansion) {
  if (expansion.wave == Wave::none) return;
  require(!expansion.powers.empty(), "powers", "at least one of 1, 2, 3", "none");
  for (index_t k = 0; k < expansion.powers.size(); ++k) {
    const int power = expansion.powers[k];
    require(power >= 1 && power <= 3, "powers", "numbers among 1, 2, 3", std::to_string(power));
    const auto end = expansion.powers.begin() + k;
    require(std::find(expansion.powers.begin(), end, power) == end, "powers", "distinct numbers",
            std::to_string(power) + " twice");
  }
}

namespace {

template <class T>
void check_shapes(index_t rows, index_t cols, MatrixView<const T> directions,
                  VectorView<const T> offset, const Expansion& expansion, MatrixView<T> out) {
  check_powers(expansion);
  require(directions.rows == cols && directions.is_row_major(), "directions",
          "a row-major matrix of " + std::to_string(cols) + " rows",
          std::to_string(directions.rows));
  require(offset.empty() || offset.size == directions.cols, "offset",
          std::to_string(directions.cols) + " entries", std::to_string(offset.size));
  const index_t width = expanded_columns(expansion, cols, directions.cols);
  require(out.rows == rows && out.cols == width && out.is_row_major(), "out",
          "shape (" + std::to_string(rows) + ", " + std::to_string(width) + ")",
          "(" + std::to_string(out.rows) + ", " + std::to_string(out.cols) + ")");
}

template <class T, class Input>
void expand_tiles(const Input& input, index_t n, index_t d, MatrixView<const T> directions,
                  VectorView<const T> offset, const Expansion& expansion, MatrixView<T> out,
                  int n_threads) {
  const index_t n_directions = directions.cols, tile = tile_rows(n);
  // The waves of a projection take about 20 operations.
  const double work =
      static_cast<double>(n) * static_cast<double>(n_directions) * static_cast<double>(2 * d + 20);
  const int threads = threads_for(work, n_threads);
  const index_t first = expansion.include_input ? d : 0;
  const bool in_place = expansion.wave == Wave::none;
  PerThread<AlignedBuffer<T>> scratch(threads);
  if (!in_place) {
    for (int t = 0; t < threads; ++t) scratch[t].reserve(std::min(tile, n) * n_directions);
  }
  for_ranges(n, tile, threads, [&](index_t begin, index_t end, int thread) {
    const index_t rows = end - begin;
    if (expansion.include_input) {
      for (index_t i = begin; i < end; ++i) copy_row(input, i, out.row(i));
    }
    if (n_directions == 0) return;
    const MatrixView<T> p = in_place ? out.block(begin, first, rows, n_directions)
                                     : row_major(scratch[thread].data(), rows, n_directions);
    project(input, begin, directions, offset, p);
    if (in_place) return;
    for (index_t r = 0; r < rows; ++r) {
      kernels<WaveKernels<T>>().expand_row(expansion.wave, expansion.powers.data(),
                                           expansion.powers.size(), p.row(r), n_directions,
                                           out.row(begin + r) + first);
    }
  });
}

}  // namespace

index_t expanded_columns(const Expansion& expansion, index_t n_features, index_t n_directions) {
  const index_t signs = expansion.wave == Wave::polynomial ? 1 : 2;
  const index_t waves = expansion.wave == Wave::none ? 1 : signs * expansion.powers.size();
  return (expansion.include_input ? n_features : 0) + waves * n_directions;
}

template <class T>
void expand(MatrixView<const T> rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads) {
  require(rows.is_row_major() || rows.cols <= 1, "X", "row-major storage", shape_text(rows));
  check_shapes(rows.rows, rows.cols, directions, offset, expansion, out);
  expand_tiles<T>(rows, rows.rows, rows.cols, directions, offset, expansion, out, n_threads);
}

template <class T>
void expand(const CsrView<T>& rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads) {
  check_csr(rows);
  check_shapes(rows.rows, rows.cols, directions, offset, expansion, out);
  expand_tiles<T>(rows, rows.rows, rows.cols, directions, offset, expansion, out, n_threads);
}

#define EIGENFEAT_INSTANTIATE(T)                                                         \
  template void expand<T>(MatrixView<const T>, MatrixView<const T>, VectorView<const T>, \
                          const Expansion&, MatrixView<T>, int);                         \
  template void expand<T>(const CsrView<T>&, MatrixView<const T>, VectorView<const T>,   \
                          const Expansion&, MatrixView<T>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
