#include "kernels/tile_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// Columns of the tile at a time: their rows of the narrow matrix stay in the first-level cache.
constexpr index_t kColumns = 256;

// Outputs whose sums stay in registers, for a panel of so many vectors.
constexpr index_t outputs_for(index_t vectors) {
  if (kRegisters == 32) return vectors == 1 ? 12 : vectors == 2 ? 8 : 6;
  return vectors == 1 ? 12 : vectors == 2 ? 6 : 4;
}

// Vectors of the next panel where `left` are to be done.
EIGENFEAT_INLINE index_t next_panel(index_t left) {
  if (kRegisters == 32) return left < 4 ? left : 4;
  return left <= 3 ? left : left == 4 ? 2 : 3;
}

// out[o] += sum over s of tile[o out_step + s sum_step] other[s], rows of out and other of width.
template <class T, index_t kOutputs, index_t kVectors>
EIGENFEAT_INLINE void sum_outputs(const T* __restrict tile, index_t out_step, index_t sum_step,
                                  index_t n_sum, const T* __restrict other, index_t width,
                                  T* __restrict out) {
  Vec<T> sum[kOutputs][kVectors];
  for (index_t o = 0; o < kOutputs; ++o) {
    for (index_t v = 0; v < kVectors; ++v) sum[o][v] = load(out + o * width + v * kWidth<T>);
  }
  for (index_t s = 0; s < n_sum; ++s) {
    Vec<T> line[kVectors];
    for (index_t v = 0; v < kVectors; ++v) line[v] = load(other + s * width + v * kWidth<T>);
    for (index_t o = 0; o < kOutputs; ++o) {
      const T entry = tile[o * out_step + s * sum_step];
      for (index_t v = 0; v < kVectors; ++v) sum[o][v] += entry * line[v];
    }
  }
  for (index_t o = 0; o < kOutputs; ++o) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[o][v], out + o * width + v * kWidth<T>);
  }
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void sum_panel(const T* tile, index_t out_step, index_t sum_step, index_t n_out,
                                index_t n_sum, const T* other, index_t width, T* out) {
  constexpr index_t kOutputs = outputs_for(kVectors);
  index_t o = 0;
  for (; o + kOutputs <= n_out; o += kOutputs)
    sum_outputs<T, kOutputs, kVectors>(tile + o * out_step, out_step, sum_step, n_sum, other, width,
                                       out + o * width);
  for (; o < n_out; ++o)
    sum_outputs<T, 1, kVectors>(tile + o * out_step, out_step, sum_step, n_sum, other, width,
                                out + o * width);
}

template <class T>
EIGENFEAT_INLINE void sum_all(const T* tile, index_t out_step, index_t sum_step, index_t n_out,
                              index_t n_sum, const T* other, index_t width, T* out) {
  for (index_t left = width / kWidth<T>; left > 0;) {
    const index_t vectors = next_panel(left);
    if (vectors == 1) sum_panel<T, 1>(tile, out_step, sum_step, n_out, n_sum, other, width, out);
    if (vectors == 2) sum_panel<T, 2>(tile, out_step, sum_step, n_out, n_sum, other, width, out);
    if (vectors == 3) sum_panel<T, 3>(tile, out_step, sum_step, n_out, n_sum, other, width, out);
    if constexpr (kRegisters == 32) {
      if (vectors == 4) sum_panel<T, 4>(tile, out_step, sum_step, n_out, n_sum, other, width, out);
    }
    other += vectors * kWidth<T>;
    out += vectors * kWidth<T>;
    left -= vectors;
  }
}

template <class T>
void tile_scores(const T* tile, index_t stride, index_t rows, index_t columns, const T* w,
                 index_t width, T* z) {
  for (index_t first = 0; first < columns; first += kColumns) {
    const index_t count = least(kColumns, columns - first);
    sum_all<T>(tile + first, stride, 1, rows, count, w + first * width, width, z);
  }
}

template <class T>
void tile_products(const T* tile, index_t stride, index_t rows, index_t columns, const T* residuals,
                   index_t width, T* g) {
  sum_all<T>(tile, 1, stride, columns, rows, residuals, width, g);
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(TileKernels<float>) = {EIGENFEAT_TIER::kWidth<float>,
                                               EIGENFEAT_TIER::tile_scores<float>,
                                               EIGENFEAT_TIER::tile_products<float>};
EIGENFEAT_DEFINE_FAMILY(TileKernels<double>) = {EIGENFEAT_TIER::kWidth<double>,
                                                EIGENFEAT_TIER::tile_scores<double>,
                                                EIGENFEAT_TIER::tile_products<double>};

}  // namespace eigenfeat
