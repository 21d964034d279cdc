#include "tiled_lower.hpp"

#include <cmath>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"

namespace eigenfeat {

TileIndex lower_tile(index_t b) {
  index_t i = static_cast<index_t>((std::sqrt(8.0 * static_cast<double>(b) + 1.0) - 1.0) / 2.0);
  while (i * (i + 1) / 2 > b) --i;
  while ((i + 1) * (i + 2) / 2 <= b) ++i;
  return {i, b - i * (i + 1) / 2};
}

// Right-looking: factor the diagonal tile, solve the panel below it, update what is right of it.
template <class T>
bool factorise_tiles(TiledLower<T>& a, int n_threads) {
  const index_t tiles = a.tiles();
  for (index_t k = 0; k < tiles; ++k) {
    if (potrf(Triangle::lower, a.tile(k, k)) != 0) return false;
    const index_t rest = tiles - k - 1;
    for_blocks(rest, n_threads, [&](index_t b, int) {
      trsm<T>(Side::right, Triangle::lower, Op::transpose, T(1), a.tile(k, k),
              a.tile(k + 1 + b, k));
    });
    for_blocks(rest * (rest + 1) / 2, n_threads, [&](index_t b, int) {
      const TileIndex at = lower_tile(b);
      const index_t i = k + 1 + at.i, j = k + 1 + at.j;
      if (i == j) {
        syrk<T>(Triangle::lower, Op::none, T(-1), a.tile(i, k), T(1), a.tile(i, i));
      } else {
        gemm<T>(Op::none, Op::transpose, T(-1), a.tile(i, k), a.tile(j, k), T(1), a.tile(i, j));
      }
    });
  }
  return true;
}

template bool factorise_tiles<float>(TiledLower<float>&, int);
template bool factorise_tiles<double>(TiledLower<double>&, int);

}  // namespace eigenfeat
