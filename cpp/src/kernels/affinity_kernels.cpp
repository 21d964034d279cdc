#include "kernels/affinity_kernels.hpp"

#include "kernels/exponential.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

using Numbers = Vec<double>;
using Bits = Register<double>::integers;

constexpr index_t kLine = kWidth<double>, kLines = kTileWidth / kLine;  // vectors of a tile's row
constexpr double kInfinity = __builtin_inf();
constexpr double kEpsilon = 0x1p-52, kSmallest = 0x1p-1022;

// Adds neighbouring lanes first.
EIGENFEAT_INLINE double sum_of(const Numbers& lanes) {
  double parts[kLine];
  store<double>(lanes, parts);
  for (index_t step = 1; step < kLine; step *= 2) {
    for (index_t l = 0; l < kLine; l += 2 * step) parts[l] += parts[l + step];
  }
  return parts[0];
}

EIGENFEAT_INLINE bool any_below(const Numbers& values, double limit) {
  bool any = false;
  for (index_t l = 0; l < kLine; ++l) any |= values[l] < limit;
  return any;
}

// Replaces the largest of k numbers in a heap by a value.
EIGENFEAT_INLINE void replace_largest(double* heap, index_t k, double value) {
  index_t at = 0;
  for (index_t child = 1; child < k; child = 2 * at + 1) {
    if (child + 1 < k && heap[child + 1] > heap[child]) ++child;
    if (!(heap[child] > value)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = value;
}

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

void limits_of_minima(const double* minima, index_t n_rows, index_t k, double* limits) {
  for (index_t i = 0; i < n_rows; ++i) {
    const double* row = minima + i * kTileWidth;
    const Numbers* line = reinterpret_cast<const Numbers*>(row);
    Numbers limit = Numbers{} + kInfinity;
    for (index_t l = 0; l < kLines; ++l) {
      Bits no_more = {};  // minus the number of values that are at most each value
      for (index_t j = 0; j < kTileWidth; ++j) no_more += row[j] <= line[l];
      const Numbers candidate = no_more <= -k ? line[l] : limit;
      limit = candidate < limit ? candidate : limit;
    }
    double least = limit[0];
    for (index_t l = 1; l < kLine; ++l) least = limit[l] < least ? limit[l] : least;
    const double magnitude = least < 0.0 ? -least : least;
    limits[i] = least + (magnitude * kEpsilon + kSmallest);
  }
}

void add_to_nearest(const double* tile, index_t n_rows, const double* norms, const double* limits,
                    index_t k, double* heaps) {
  const Numbers* norm = reinterpret_cast<const Numbers*>(norms);
  for (index_t i = 0; i < n_rows; ++i) {
    const Numbers* line = reinterpret_cast<const Numbers*>(tile + i * kTileWidth);
    double* heap = heaps + i * k;
    Numbers values[kLines];
    for (index_t l = 0; l < kLines; ++l) values[l] = norm[l] - 2.0 * line[l];
    Numbers lowest = values[0];
    for (index_t l = 1; l < kLines; ++l) lowest = values[l] < lowest ? values[l] : lowest;
    const double limit = limits[i] < heap[0] ? limits[i] : heap[0];
    if (!any_below(lowest, limit)) continue;
    for (index_t l = 0; l < kLines; ++l) {
      if (!any_below(values[l], limit)) continue;
      for (index_t j = 0; j < kLine; ++j) {
        if (values[l][j] < limit && values[l][j] < heap[0]) replace_largest(heap, k, values[l][j]);
      }
    }
  }
}

void affinities(double* tile, index_t n_rows, AffinityNorms rows, AffinityNorms columns) {
  const Numbers* norm = reinterpret_cast<const Numbers*>(columns.norms);
  const Numbers* inverse = reinterpret_cast<const Numbers*>(columns.inverse);
  for (index_t i = 0; i < n_rows; ++i) {
    Numbers* line = reinterpret_cast<Numbers*>(tile + i * kTileWidth);
    for (index_t l = 0; l < kLines; ++l) {
      Numbers x = (line[l] * 2.0 - rows.norms[i] - norm[l]) * rows.inverse[i] * inverse[l];
      exponential<double>(x);
      line[l] = x;
    }
  }
}

void add_tile_sums(const double* tile, index_t n_rows, double* row_sums, double* column_sums) {
  Numbers columns[kLines] = {};
  for (index_t i = 0; i < n_rows; ++i) {
    const Numbers* line = reinterpret_cast<const Numbers*>(tile + i * kTileWidth);
    for (index_t l = 0; l < kLines; ++l) columns[l] += line[l];
    Numbers parts[kLines];
    for (index_t l = 0; l < kLines; ++l) parts[l] = line[l];
    for (index_t step = 1; step < kLines; step *= 2) {
      for (index_t l = 0; l < kLines; l += 2 * step) parts[l] += parts[l + step];
    }
    row_sums[i] += sum_of(parts[0]);
  }
  if (column_sums == nullptr) return;
  Numbers* sums = reinterpret_cast<Numbers*>(column_sums);
  for (index_t l = 0; l < kLines; ++l) sums[l] += columns[l];
}

void transpose_tile(const double* __restrict tile, index_t n_columns, double* __restrict out) {
  for (index_t first = 0; first < kTileWidth; first += kLine) {
    const double* __restrict rows = tile + first * kTileWidth;
    for (index_t j = 0; j < n_columns; ++j) {
      for (index_t l = 0; l < kLine; ++l)
        out[j * kTileWidth + first + l] = rows[l * kTileWidth + j];
    }
  }
}

void pack_transposed(const double* __restrict x, index_t stride, index_t n_rows, index_t d,
                     double* __restrict out) {
  for (index_t j = 0; j < d; ++j) {
    for (index_t l = 0; l < n_rows; ++l) out[j * kTileWidth + l] = x[l * stride + j];
    for (index_t l = n_rows; l < kTileWidth; ++l) out[j * kTileWidth + l] = 0.0;
  }
}

void laplacian_rows(const double* __restrict x, const double* degrees, index_t n_rows,
                    index_t width, double* __restrict z) {
  for (index_t i = 0; i < n_rows; ++i) {
    for (index_t j = i * width; j < (i + 1) * width; ++j) z[j] = degrees[i] * x[j] - z[j];
  }
}

void weighted_sum(double a, const double* __restrict z, double b, const double* __restrict x,
                  index_t n, double* __restrict out) {
  for (index_t j = 0; j < n; ++j) out[j] = a * z[j] + b * x[j];
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(AffinityKernels) = [] {
  AffinityKernels table{};
  table.lower_minima = EIGENFEAT_TIER::lower_minima;
  table.limits_of_minima = EIGENFEAT_TIER::limits_of_minima;
  table.add_to_nearest = EIGENFEAT_TIER::add_to_nearest;
  table.affinities = EIGENFEAT_TIER::affinities;
  table.add_tile_sums = EIGENFEAT_TIER::add_tile_sums;
  table.transpose_tile = EIGENFEAT_TIER::transpose_tile;
  table.pack_transposed = EIGENFEAT_TIER::pack_transposed;
  table.laplacian_rows = EIGENFEAT_TIER::laplacian_rows;
  table.weighted_sum = EIGENFEAT_TIER::weighted_sum;
  return table;
}();

}  // namespace eigenfeat
