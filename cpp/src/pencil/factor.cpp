#include "pencil/factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random_block.hpp"
#include "base/tiled_lower.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "pencil/narrow.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTile = 128;   // rows of a tile of the factorisation
constexpr index_t kSmall = 512;  // smaller matrices are factorised by one call of LAPACK
constexpr int kNormSteps = 8;    // steps of the power iteration for the norm
constexpr index_t kBlock = 192;  // rows of a step of substitution

// The inverse of a diagonal block of L, column-major: its transpose in row-major order.
template <class F>
auto* inverse_of(F& factor, index_t block) {
  return factor.inverses.data() + block * kBlock * kBlock;
}

template <class T>
void copy_shifted(MatrixView<const T> matrix, VectorView<const T> shifts, MatrixView<T> out,
                  int n_threads) {
  for_ranges(matrix.rows, 64, n_threads, [&](index_t begin, index_t end, int) {
    for (index_t j = begin; j < end; ++j) {
      std::copy(matrix.row(j), matrix.row(j) + matrix.cols, out.col(j));
      out(j, j) += shifts[j];
    }
  });
}

// Right-looking Cholesky over tiles: factorise the diagonal tile, solve the panel, update the
// trailing matrix.
template <class T>
int tiled_cholesky(MatrixView<T> a, int n_threads) {
  const index_t d = a.rows;
  if (d <= kSmall) return potrf(Triangle::lower, a);
  const auto size = [d](index_t tile) { return std::min(kTile, d - tile * kTile); };
  const auto tile = [&](index_t i, index_t j) {
    return a.block(i * kTile, j * kTile, size(i), size(j));
  };
  const index_t tiles = (d + kTile - 1) / kTile;
  for (index_t k = 0; k < tiles; ++k) {
    if (const int info = potrf(Triangle::lower, tile(k, k)); info != 0)
      return info + static_cast<int>(k * kTile);
    const index_t rest = tiles - k - 1;
    for_blocks(rest, n_threads, [&](index_t b, int) {
      trsm<T>(Side::right, Triangle::lower, Op::transpose, T(1), tile(k, k), tile(k + 1 + b, k));
    });
    for_blocks(rest * (rest + 1) / 2, n_threads, [&](index_t b, int) {
      const TileIndex at = lower_tile(b);
      const index_t row = k + 1 + at.i, col = k + 1 + at.j;
      if (row == col) {
        syrk<T>(Triangle::lower, Op::none, T(-1), tile(row, k), T(1), tile(row, col));
      } else {
        gemm<T>(Op::none, Op::transpose, T(-1), tile(row, k), tile(col, k), T(1), tile(row, col));
      }
    });
  }
  return 0;
}

// Inverses of the diagonal blocks of L, for solves.
template <class T>
void prepare_solves(Factor<T>& factor, int n_threads) {
  const index_t d = factor.order(), blocks = (d + kBlock - 1) / kBlock;
  factor.inverses.reserve(blocks * kBlock * kBlock);
  const MatrixView<const T> l = factor.lower_view();
  for_blocks(blocks, n_threads, [&](index_t block, int) {
    const index_t first = block * kBlock, n = std::min(kBlock, d - first);
    const MatrixView<T> inverse = column_major(inverse_of(factor, block), n, n);
    for (index_t c = 0; c < n; ++c) {
      for (index_t r = 0; r < n; ++r) inverse(r, c) = r < c ? T(0) : l(first + r, first + c);
    }
    trtri<T>(Triangle::lower, inverse);
  });
}

// The largest eigenvalue of the compact B + diag(shifts) by block power iteration; every iterate is
// a lower bound.
template <class T>
double norm_of(const Factor<T>& factor, int n_threads) {
  const MatrixView<const T> matrix = factor.compact.view();
  const Vector<T>& shifts = factor.compact_shifts;
  const index_t d = matrix.rows;
  constexpr index_t width = kLane<T>;
  constexpr auto columns = static_cast<std::size_t>(width);
  AlignedBuffer<T> x(d * width), y(d * width);
  fill_random(x.data(), d * width, 0);
  // In units of the largest diagonal entry, which is the largest entry, so that squares do not
  // overflow.
  double unit = 0.0;
  for (index_t j = 0; j < d; ++j) {
    unit = std::max(unit, static_cast<double>(matrix(j, j)) + static_cast<double>(shifts[j]));
  }
  double norm = 0.0;
  for (int step = 0; step < kNormSteps; ++step) {
    multiply_narrow<T>(Shape::symmetric, matrix, x.data(), width, y.data(), n_threads);
    double before[columns] = {}, after[columns] = {};
    for (index_t i = 0; i < d; ++i) {
      const double shift = static_cast<double>(shifts[i]);
      for (index_t c = 0; c < width; ++c) {
        const double xi = static_cast<double>(x[i * width + c]);
        const double yi = (static_cast<double>(y[i * width + c]) + shift * xi) / unit;
        before[c] += xi * xi;
        after[c] += yi * yi;
        x[i * width + c] = static_cast<T>(yi);
      }
    }
    T scale[columns];
    for (index_t c = 0; c < width; ++c) {
      if (before[c] > 0.0) norm = std::max(norm, std::sqrt(after[c] / before[c]));
      scale[c] = static_cast<T>(after[c] > 0.0 ? 1.0 / std::sqrt(after[c]) : 0.0);
    }
    for (index_t i = 0; i < d; ++i) {
      for (index_t c = 0; c < width; ++c) x[i * width + c] *= scale[c];
    }
  }
  return norm * unit;
}

// Rows [first, first + n) of L^T to the right of their diagonal block, and the inverse of the block.
template <class T>
struct BlockRow {
  BlockRow(const Factor<T>& factor, index_t block)
      : first(block * kBlock),
        n(std::min(kBlock, factor.order() - first)),
        end(first + n),
        beyond(row_major<const T>(factor.lower.data(), factor.order(), factor.order())
                   .block(first, end, n, factor.order() - end)),
        inverse(row_major<const T>(inverse_of(factor, block), n, n)) {}
  index_t first, n, end;
  MatrixView<const T> beyond, inverse;
};

}  // namespace

index_t factor_numbers(index_t d, bool for_solves) {
  if (!for_solves) return d * d;
  const index_t blocks = (d + kBlock - 1) / kBlock;
  return d * d * 4 / 3 + blocks * kBlock * kBlock;  // compact copies have up to .8 d rows
}

template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool for_solves,
               int n_threads, Factor<T>& factor) {
  factor.matrix = matrix;
  factor.shifts = shifts;
  if (for_solves) {
    factor.compact.read(matrix, Entries::beside_diagonal);
  } else {
    factor.compact.read_whole(matrix);
  }
  const MatrixView<const T> compact = factor.compact.view();
  const index_t d = compact.rows;
  factor.compact_shifts.clear();
  for (const index_t i : factor.compact.rows()) factor.compact_shifts.push_back(shifts[i]);
  factor.lower.reserve(d * d);
  const MatrixView<T> lower = column_major(factor.lower.data(), d, d);
  copy_shifted<T>(compact, {factor.compact_shifts.data(), d}, lower, n_threads);
  bool regular = tiled_cholesky(lower, n_threads) == 0;
  const T smallest = static_cast<T>(matrix.rows) * std::numeric_limits<T>::epsilon();
  for (index_t j = 0; regular && j < d; ++j) {
    const T diagonal = compact(j, j) + factor.compact_shifts[j];
    regular = lower(j, j) * lower(j, j) > smallest * diagonal && std::isfinite(lower(j, j));
  }
  double largest = 0.0;  // largest diagonal entry
  for (index_t i = 0; regular && i < matrix.rows; ++i) {
    const T diagonal = matrix(i, i) + shifts[i];
    regular = diagonal > T(0) && std::isfinite(diagonal);
    largest = std::max(largest, static_cast<double>(diagonal));
  }
  factor.status = regular ? Status::ok : Status::not_positive_definite;
  if (!regular) return;
  factor.norm = norm_of(factor, n_threads);
  if (!factor.compact.is_whole()) factor.norm = std::max(factor.norm, largest);
  if (for_solves) prepare_solves(factor, n_threads);
}

template <class T>
void solve_lower(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads) {
  const index_t d = factor.order();
  AlignedBuffer<T> rest(std::min(d, kBlock) * width);
  std::copy(x, x + d * width, y);
  for (index_t block = 0; block * kBlock < d; ++block) {
    const BlockRow<T> row(factor, block);
    T* const out = y + row.first * width;
    std::copy(out, out + row.n * width, rest.data());
    std::fill(out, out + row.n * width, T(0));
    add_transposed_narrow<T>(Shape::upper, row.inverse, rest.data(), width, out, n_threads);
    if (row.end == d) break;
    for (index_t i = 0; i < row.n * width; ++i) rest[i] = -out[i];
    add_transposed_narrow<T>(Shape::full, row.beyond, rest.data(), width, y + row.end * width,
                             n_threads);
  }
}

template <class T>
void solve_upper(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads) {
  const index_t d = factor.order();
  AlignedBuffer<T> rest(std::min(d, kBlock) * width);
  for (index_t block = (d + kBlock - 1) / kBlock; block-- > 0;) {
    const BlockRow<T> row(factor, block);
    T* const out = y + row.first * width;
    const T* right = x + row.first * width;
    if (row.end < d) {
      multiply_narrow<T>(Shape::full, row.beyond, y + row.end * width, width, out, n_threads);
      for (index_t i = 0; i < row.n * width; ++i) rest[i] = right[i] - out[i];
      right = rest.data();
    }
    multiply_narrow<T>(Shape::upper, row.inverse, right, width, out, n_threads);
  }
}

template void factorise<float>(MatrixView<const float>, VectorView<const float>, bool, int,
                               Factor<float>&);
template void factorise<double>(MatrixView<const double>, VectorView<const double>, bool, int,
                                Factor<double>&);
template void solve_lower<float>(const Factor<float>&, const float*, index_t, float*, int);
template void solve_lower<double>(const Factor<double>&, const double*, index_t, double*, int);
template void solve_upper<float>(const Factor<float>&, const float*, index_t, float*, int);
template void solve_upper<double>(const Factor<double>&, const double*, index_t, double*, int);

}  // namespace eigenfeat
