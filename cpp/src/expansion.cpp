#include "eigenfeat/expansion.hpp"

#include <algorithm>
#include <string>

#include "csr.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "wave_kernels.hpp"

namespace eigenfeat {
namespace {

// Rows of a tile: enough for the gemm to run at its rate, few enough for small inputs to be shared.
index_t tile_rows(index_t n) {
  return n >= 4096 ? 512 : 128;
}

template <class T>
struct DenseInput {
  MatrixView<const T> x;

  // p (r, F) row-major <- rows [begin, begin + r) times directions, plus p where beta is 1
  void project(index_t begin, MatrixView<const T> directions, T beta, MatrixView<T> p) const {
    const auto rows = x.block(begin, 0, p.rows, x.cols);
    gemm<T>(Op::none, Op::none, T(1), directions.transposed(), rows.transposed(), beta,
            p.transposed());
  }
  void copy_row(index_t i, T* out) const { std::copy(x.row(i), x.row(i) + x.cols, out); }
};

template <class T>
struct SparseInput {
  CsrView<T> x;

  void project(index_t begin, MatrixView<const T> directions, T beta, MatrixView<T> p) const {
    for (index_t r = 0; r < p.rows; ++r) {
      if (beta == T(0)) std::fill(p.row(r), p.row(r) + p.cols, T(0));
      for (index_t q = x.indptr[begin + r]; q < x.indptr[begin + r + 1]; ++q) {
        add_multiple(x.values[q], directions.row(x.indices[q]), p.cols, p.row(r));
      }
    }
  }
  void copy_row(index_t i, T* out) const {
    std::fill(out, out + x.cols, T(0));
    for (index_t q = x.indptr[i]; q < x.indptr[i + 1]; ++q) out[x.indices[q]] += x.values[q];
  }
};

void check_powers(const Expansion& expansion) {
  if (expansion.wave == Wave::none) return;
  require(!expansion.powers.empty(), "powers", "at least one of 1, 2, 3", "none");
  for (std::size_t k = 0; k < expansion.powers.size(); ++k) {
    const int power = expansion.powers[k];
    require(power >= 1 && power <= 3, "powers", "numbers among 1, 2, 3", std::to_string(power));
    const auto end = expansion.powers.begin() + static_cast<std::ptrdiff_t>(k);
    require(std::find(expansion.powers.begin(), end, power) == end, "powers", "distinct numbers",
            std::to_string(power) + " twice");
  }
}

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

template <class T>
void fill_rows(VectorView<const T> values, MatrixView<T> p) {
  for (index_t r = 0; r < p.rows; ++r) std::copy(values.data, values.data + values.size, p.row(r));
}

template <class T, class Input>
void expand_tiles(const Input& input, index_t n, index_t d, MatrixView<const T> directions,
                  VectorView<const T> offset, const Expansion& expansion, MatrixView<T> out,
                  int n_threads) {
  const index_t n_directions = directions.cols, tile = tile_rows(n);
  const double work =
      static_cast<double>(n) * static_cast<double>(n_directions) * static_cast<double>(2 * d + 20);
  const int threads = threads_for(work, n_threads);
  const index_t first = expansion.include_input ? d : 0;
  const T beta = offset.empty() ? T(0) : T(1);
  const bool in_place = expansion.wave == Wave::none;
  PerThread<AlignedBuffer<T>> scratch(threads);
  if (!in_place) {
    for (int t = 0; t < threads; ++t) scratch[t].reserve(std::min(tile, n) * n_directions);
  }
  for_ranges(n, tile, threads, [&](index_t begin, index_t end, int thread) {
    const index_t rows = end - begin;
    if (expansion.include_input) {
      for (index_t i = begin; i < end; ++i) input.copy_row(i, out.row(i));
    }
    if (n_directions == 0) return;
    const MatrixView<T> p = in_place ? out.block(begin, first, rows, n_directions)
                                     : row_major(scratch[thread].data(), rows, n_directions);
    if (!offset.empty()) fill_rows(offset, p);
    input.project(begin, directions, beta, p);
    if (in_place) return;
    for (index_t r = 0; r < rows; ++r) {
      expand_row(expansion.wave, expansion.powers.data(),
                 static_cast<index_t>(expansion.powers.size()), p.row(r), n_directions,
                 out.row(begin + r) + first);
    }
  });
}

}  // namespace

index_t expanded_columns(const Expansion& expansion, index_t n_features, index_t n_directions) {
  const index_t waves =
      expansion.wave == Wave::none ? 1 : 2 * static_cast<index_t>(expansion.powers.size());
  return (expansion.include_input ? n_features : 0) + waves * n_directions;
}

template <class T>
void expand(MatrixView<const T> rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads) {
  require(rows.is_row_major() || rows.cols <= 1, "X", "row-major storage", "another layout");
  check_shapes(rows.rows, rows.cols, directions, offset, expansion, out);
  expand_tiles<T>(DenseInput<T>{rows}, rows.rows, rows.cols, directions, offset, expansion, out,
                  n_threads);
}

template <class T>
void expand(const CsrView<T>& rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads) {
  check_csr(rows);
  check_shapes(rows.rows, rows.cols, directions, offset, expansion, out);
  expand_tiles<T>(SparseInput<T>{rows}, rows.rows, rows.cols, directions, offset, expansion, out,
                  n_threads);
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
