#include "kernels/affinity_kernels.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/line.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

using Numbers = Line<double>::type;
typedef std::int64_t Bits __attribute__((vector_size(64)));
// The same where addresses are not on a line's boundary.
typedef double Unaligned __attribute__((vector_size(64), aligned(8)));

constexpr index_t kLine = kLane<double>, kLines = kTileWidth / kLine;

EIGENFEAT_INLINE double sum_of(const Numbers& lanes) {
  const double low = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  const double high = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7]);
  return low + high;
}

EIGENFEAT_INLINE bool any_below(const Numbers& values, double limit) {
  bool any = false;
  for (index_t l = 0; l < kLine; ++l) any |= values[l] < limit;
  return any;
}

// Puts a value in the stead of the largest of k numbers in a heap.
void replace_largest(double* heap, index_t k, double value) {
  index_t at = 0;
  for (index_t child = 1; child < k; child = 2 * at + 1) {
    if (child + 1 < k && heap[child + 1] > heap[child]) ++child;
    if (!(heap[child] > value)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = value;
}

// x <- exp(min(x, 0)): 2^k times a polynomial of degree 11 in r = x - k log 2, |r| < 0.3466, which
// interpolates there with an error of 1.6e-17.
EIGENFEAT_INLINE void exponential(Numbers& x) {
  constexpr double shift = 0x1.8p52;  // x + shift has the nearest integer to x in its lowest bits
  x = x > 0.0 ? x - x : x;
  const Numbers shifted = x * 1.4426950408889634 + shift;
  const Numbers k = shifted - shift;
  const Numbers r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  Numbers p = r * 2.510038319586702e-08 + 2.7620085455018414e-07;
  p = p * r + 2.7557268464831627e-06;
  p = p * r + 2.4801521302241082e-05;
  p = p * r + 1.9841269863050506e-04;
  p = p * r + 1.388888891720967e-03;
  p = p * r + 8.333333333330063e-03;
  p = p * r + 4.1666666666624136e-02;
  p = p * r + 0.16666666666666669;
  p = p * r + 0.5000000000000001;
  p = p * (r * r) + r + 1.0;
  // The lowest bits of shifted, with the exponent's bias, become the exponent of 2^k.
  Bits bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  Numbers power;
  std::memcpy(&power, &bits, sizeof power);
  p = p * power;
  x = x < -708.0 ? Numbers{} : p;
}

}  // namespace

EIGENFEAT_CLONES
void lower_minima(const double* tile, index_t n_rows, const double* norms, double* minima) {
  const Numbers* norm = reinterpret_cast<const Numbers*>(norms);
  const Numbers* line = reinterpret_cast<const Numbers*>(tile);
  Numbers* least = reinterpret_cast<Numbers*>(minima);
  for (index_t i = 0; i < n_rows * kLines; i += kLines) {
    for (index_t l = 0; l < kLines; ++l) {
      const Numbers value = norm[l] - 2.0 * line[i + l];
      least[i + l] = value < least[i + l] ? value : least[i + l];
    }
  }
}

EIGENFEAT_CLONES
void limits_of_minima(const double* minima, index_t n_rows, index_t k, double* limits) {
  for (index_t i = 0; i < n_rows; ++i) {
    const double* row = minima + i * kTileWidth;
    const Numbers* line = reinterpret_cast<const Numbers*>(row);
    Numbers limit = Numbers{} + std::numeric_limits<double>::infinity();
    Bits no_more[static_cast<std::size_t>(kLines)] = {};  // less how many are no more than each
    for (index_t j = 0; j < kTileWidth; ++j) {
      for (index_t l = 0; l < kLines; ++l) no_more[l] += row[j] <= line[l];
    }
    for (index_t l = 0; l < kLines; ++l) {
      const Numbers candidate = no_more[l] <= -k ? line[l] : limit;
      limit = candidate < limit ? candidate : limit;
    }
    double least = limit[0];
    for (index_t l = 1; l < kLine; ++l) least = limit[l] < least ? limit[l] : least;
    const double magnitude = least < 0.0 ? -least : least;
    limits[i] = least + (magnitude * std::numeric_limits<double>::epsilon() +
                         std::numeric_limits<double>::min());
  }
}

EIGENFEAT_CLONES
void add_to_nearest(const double* tile, index_t n_rows, const double* norms, const double* limits,
                    index_t k, double* heaps) {
  const Numbers* norm = reinterpret_cast<const Numbers*>(norms);
  for (index_t i = 0; i < n_rows; ++i) {
    const Numbers* line = reinterpret_cast<const Numbers*>(tile + i * kTileWidth);
    double* heap = heaps + i * k;
    Numbers values[static_cast<std::size_t>(kLines)];
    for (index_t l = 0; l < kLines; ++l) values[l] = norm[l] - 2.0 * line[l];
    const Numbers left = values[0] < values[1] ? values[0] : values[1];
    const Numbers right = values[2] < values[3] ? values[2] : values[3];
    const double limit = limits[i] < heap[0] ? limits[i] : heap[0];
    if (!any_below(left < right ? left : right, limit)) continue;
    for (index_t l = 0; l < kLines; ++l) {
      if (!any_below(values[l], limit)) continue;
      for (index_t j = 0; j < kLine; ++j) {
        if (values[l][j] < limit && values[l][j] < heap[0]) replace_largest(heap, k, values[l][j]);
      }
    }
  }
}

EIGENFEAT_CLONES
void affinities(double* tile, index_t n_rows, AffinityNorms rows, AffinityNorms columns) {
  const Numbers* norm = reinterpret_cast<const Numbers*>(columns.norms);
  const Numbers* inverse = reinterpret_cast<const Numbers*>(columns.inverse);
  for (index_t i = 0; i < n_rows; ++i) {
    Numbers* line = reinterpret_cast<Numbers*>(tile + i * kTileWidth);
    for (index_t l = 0; l < kLines; ++l) {
      Numbers x = (line[l] * 2.0 - rows.norms[i] - norm[l]) * rows.inverse[i] * inverse[l];
      exponential(x);
      line[l] = x;
    }
  }
}

EIGENFEAT_CLONES
void add_tile_sums(const double* tile, index_t n_rows, double* row_sums, double* column_sums) {
  Numbers columns[static_cast<std::size_t>(kLines)] = {};
  for (index_t i = 0; i < n_rows; ++i) {
    const Numbers* line = reinterpret_cast<const Numbers*>(tile + i * kTileWidth);
    for (index_t l = 0; l < kLines; ++l) columns[l] += line[l];
    const Numbers total = (line[0] + line[1]) + (line[2] + line[3]);
    row_sums[i] += sum_of(total);
  }
  if (column_sums == nullptr) return;
  Numbers* sums = reinterpret_cast<Numbers*>(column_sums);
  for (index_t l = 0; l < kLines; ++l) sums[l] += columns[l];
}

EIGENFEAT_CLONES
void transpose_tile(const double* __restrict tile, index_t n_columns, double* __restrict out) {
  for (index_t first = 0; first < kTileWidth; first += kLine) {
    const double* __restrict rows = tile + first * kTileWidth;
    for (index_t j = 0; j < n_columns; ++j) {
      for (index_t l = 0; l < kLine; ++l)
        out[j * kTileWidth + first + l] = rows[l * kTileWidth + j];
    }
  }
}

EIGENFEAT_CLONES
void pack_transposed(const double* __restrict x, index_t stride, index_t n_rows, index_t d,
                     double* __restrict out) {
  for (index_t j = 0; j < d; ++j) {
    for (index_t l = 0; l < n_rows; ++l) out[j * kTileWidth + l] = x[l * stride + j];
    for (index_t l = n_rows; l < kTileWidth; ++l) out[j * kTileWidth + l] = 0.0;
  }
}

EIGENFEAT_CLONES
void laplacian_rows(const double* __restrict x, const double* degrees, index_t n_rows,
                    index_t width, double* __restrict z) {
  for (index_t i = 0; i < n_rows; ++i) {
    for (index_t j = i * width; j < (i + 1) * width; ++j) z[j] = degrees[i] * x[j] - z[j];
  }
}

EIGENFEAT_CLONES
void weighted_sum(double a, const double* __restrict z, double b, const double* __restrict x,
                  index_t n, double* __restrict out) {
  for (index_t j = 0; j < n; ++j) out[j] = a * z[j] + b * x[j];
}

}  // namespace eigenfeat
