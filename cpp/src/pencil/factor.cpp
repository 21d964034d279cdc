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

constexpr index_t kTile = 128;
constexpr index_t kSmall = 512;  // below it one LAPACK call
constexpr int kNormSteps = 8;
constexpr index_t kBeyond = 16;  // entries beside a triangle that products of several rows read

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

// Right-looking Cholesky over tiles: factor the diagonal tile, solve the panel, update the rest.
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

// W = L^-1 by tiles: W_jj = L_jj^-1, then down each column of tiles
//   W_ij = -W_ii (L_ij W_jj + ... + L_i,i-1 W_i-1,j).
// Both ways round: the column-major array read by rows is W^T. Of the other triangle the tiles on the
// diagonal and kBeyond entries beside it are zero, the rest is not set.
template <class T>
void invert(Factor<T>& factor, int n_threads) {
  const index_t d = factor.order(), tiles = (d + kTile - 1) / kTile;
  factor.inverse_upper.reserve(d * d);
  factor.inverse_lower.reserve(d * d);
  const MatrixView<const T> l = factor.lower_view();
  const MatrixView<T> w = column_major(factor.inverse_upper.data(), d, d);
  const MatrixView<T> rows = row_major(factor.inverse_lower.data(), d, d);
  const auto size = [d](index_t tile) { return std::min(kTile, d - tile * kTile); };
  for_blocks(tiles, n_threads, [&](index_t j, int) {
    const index_t n = size(j), at = j * kTile;
    for (index_t c = at; c < at + n; ++c) {
      for (index_t r = std::max<index_t>(std::min(at, c - kBeyond), 0); r < c; ++r) w(r, c) = T(0);
      for (index_t r = c; r < at + n; ++r) w(r, c) = l(r, c);
    }
    trtri<T>(Triangle::lower, w.block(at, at, n, n));
  });
  for_blocks(tiles, n_threads, [&](index_t j, int) {
    AlignedBuffer<T> product(kTile * kTile);
    const index_t n = size(j), at = j * kTile;
    for (index_t i = j + 1; i < tiles; ++i) {
      const index_t m = size(i), row = i * kTile;
      const MatrixView<T> sum = column_major(product.data(), m, n);
      gemm<T>(Op::none, Op::none, T(-1), l.block(row, at, m, row - at),
              w.block(at, at, row - at, n), T(0), sum);
      gemm<T>(Op::none, Op::none, T(1), w.block(row, row, m, m), sum, T(0), w.block(row, at, m, n));
    }
    for (index_t r = std::max<index_t>(at - kBeyond, 0); r < d; ++r) {
      const index_t begin = std::clamp(r + 1, at, at + n);
      for (index_t c = at; c < begin; ++c) rows(r, c) = w(r, c);
      for (index_t c = begin; c < std::min(at + n, r + 1 + kBeyond); ++c) rows(r, c) = T(0);
    }
  });
}

// The largest eigenvalue of the compact B + diag(shifts) by block power steps; every iterate gives a bound from
// below.
template <class T>
double norm_of(const Factor<T>& factor, int n_threads) {
  const MatrixView<const T> matrix = factor.compact.view();
  const Vector<T>& shifts = factor.compact_shifts;
  const index_t d = matrix.rows;
  constexpr index_t width = kLane<T>;
  constexpr auto columns = static_cast<std::size_t>(width);
  AlignedBuffer<T> x(d * width), y(d * width);
  fill_random(x.data(), d * width, 0);
  // In units of the largest diagonal entry, the largest of all, so that no square leaves the range.
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

}  // namespace

template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool with_inverse,
               int n_threads, Factor<T>& factor) {
  factor.matrix = matrix;
  factor.shifts = shifts;
  if (with_inverse) {
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
  double largest = 0.0;  // of the whole diagonal
  for (index_t i = 0; regular && i < matrix.rows; ++i) {
    const T diagonal = matrix(i, i) + shifts[i];
    regular = diagonal > T(0) && std::isfinite(diagonal);
    largest = std::max(largest, static_cast<double>(diagonal));
  }
  factor.status = regular ? Status::ok : Status::not_positive_definite;
  if (!regular) return;
  factor.norm = norm_of(factor, n_threads);
  if (!factor.compact.is_whole()) factor.norm = std::max(factor.norm, largest);
  if (with_inverse) invert(factor, n_threads);
}

template void factorise<float>(MatrixView<const float>, VectorView<const float>, bool, int,
                               Factor<float>&);
template void factorise<double>(MatrixView<const double>, VectorView<const double>, bool, int,
                                Factor<double>&);

}  // namespace eigenfeat
