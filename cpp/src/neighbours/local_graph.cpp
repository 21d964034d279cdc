// A by (3.25): with E_ij = p_j D_ij, sum_ij E_ij D_ij^T = X_q^T sum_j E_ij - X_r^T Z, where row q
// of Z is the sum of E_ij / k over the pairs (i, j) that have q as a neighbour. If the queries are
// the references, this is X^T (L X) with the graph Laplacian L = sum_j p_j (I - N_j - N_j^T + N_j^T
// N_j).
#include <algorithm>

#include "eigenfeat/vector.hpp"
#include "neighbours/local_pairs.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kWaveBytes = index_t{1} << 26;  // bytes of L X in memory at a time
constexpr index_t kPiece = 64;    // columns of a task; in these, the rows of a class fit the cache
constexpr index_t kPanel = 2048;  // rows of a product

template <class T>
struct Wave {
  index_t first = 0, width = 0;  // columns
  // own: (queries, width); spread: (references, width). If the queries are the references, both views
  // are of one array.
  MatrixView<T> own, spread;
};

template <class T>
void fill_wave(const PairRows<T>& rows, VectorView<const double> priors, const Wave<T>& wave,
               int n_threads) {
  const auto& pairs = rows.pairs();
  struct Lists {
    Vector<const T*> rows;
    Vector<T*> targets;
  };
  PerThread<Lists> scratch(n_threads);
  for_ranges(wave.width, kPiece, n_threads, [&](index_t begin, index_t end, int thread) {
    Lists& lists = scratch[thread];
    lists.rows.resize(pairs.n_neighbors);
    lists.targets.resize(pairs.n_neighbors);
    const index_t column = wave.first + begin;
    const T* scale = rows.scaled() ? rows.scale() + column : nullptr;
    for (index_t c = 0; c < rows.classes(); ++c) {
      if (priors[c] <= 0.0) continue;
      for (index_t i = 0; i < rows.queries(); ++i) {
        const index_t n = rows.count(i, c);
        if (n == 0) continue;
        const index_t* list = rows.neighbours(i, c);
        for (index_t r = 0; r < n; ++r) {
          lists.rows[r] = pairs.references.row(list[r]) + column;
          lists.targets[r] = wave.spread.row(list[r]) + begin;
        }
        const T share = static_cast<T>(priors[c] / static_cast<double>(n));
        kernels<DistanceKernels<T>>().spread_difference(
            pairs.queries.row(i) + column, lists.rows.data(), n, end - begin, scale, share,
            wave.own.row(i) + begin, lists.targets.data());
      }
    }
  });
}

// sum += x^T y, by panels of centred rows of x.
template <class T>
void multiply_wave(const PairRows<T>& rows, MatrixView<const T> x, MatrixView<const T> y,
                   index_t first, TileSums<T>& sums, AlignedBuffer<T>& panel,
                   MatrixView<double> weighted, int n_threads) {
  const index_t d = rows.d();
  const double* mean = rows.units().mean.data();
  for (index_t begin = 0; begin < x.rows; begin += kPanel) {
    const index_t count = std::min(kPanel, x.rows - begin);
    for_ranges(count, 64, n_threads, [&](index_t from, index_t to, int) {
      for (index_t i = from; i < to; ++i) {
        T* out = panel.data() + i * d;
        const T* row = x.row(begin + i);
        for (index_t j = 0; j < d; ++j) {
          const double gap = static_cast<double>(row[j]) - mean[j];
          out[j] = static_cast<T>(gap) * rows.scale()[j];
        }
      }
    });
    sums.add_product(row_major<const T>(panel.data(), count, d), y.block(begin, 0, count, y.cols),
                     first, rows.inverse_scale(), {weighted, 1.0});
  }
}

}  // namespace

template <class T>
void weighted_by_graph(const PairRows<T>& rows, VectorView<const double> priors,
                       MatrixView<double> weighted, int n_threads) {
  const auto& pairs = rows.pairs();
  const index_t d = rows.d(), m = rows.queries(), n = pairs.references.rows;
  const index_t held = rows.same() ? m : m + n;
  constexpr index_t tile = TileSums<T>::kTile;
  const index_t fit = kWaveBytes / (static_cast<index_t>(sizeof(T)) * std::max<index_t>(held, 1));
  const index_t most = std::min(d, std::max<index_t>(fit / tile, 1) * tile);
  const index_t stride = most + 16;  // not a multiple of a page
  AlignedBuffer<T> buffer(std::max<index_t>(held, 1) * stride);
  AlignedBuffer<T> panel(std::min(kPanel, std::max<index_t>({m, n, 1})) * d);
  TileSums<T> sums(d, n_threads);
  for (index_t first = 0; first < d; first += most) {
    std::fill(buffer.data(), buffer.data() + held * stride, T(0));
    Wave<T> wave;
    wave.first = first;
    wave.width = std::min(most, d - first);
    wave.own = row_major(buffer.data(), m, wave.width, stride);
    wave.spread =
        rows.same() ? wave.own : row_major(buffer.data() + m * stride, n, wave.width, stride);
    fill_wave(rows, priors, wave, n_threads);
    multiply_wave<T>(rows, pairs.queries, wave.own, first, sums, panel, weighted, n_threads);
    if (rows.same()) continue;
    multiply_wave<T>(rows, pairs.references, wave.spread, first, sums, panel, weighted, n_threads);
  }
}

template void weighted_by_graph<float>(const PairRows<float>&, VectorView<const double>,
                                       MatrixView<double>, int);
template void weighted_by_graph<double>(const PairRows<double>&, VectorView<const double>,
                                        MatrixView<double>, int);

}  // namespace eigenfeat
