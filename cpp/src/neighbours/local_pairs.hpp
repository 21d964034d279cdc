// Private to local_means: differences D_ij of queries and their local means, in units in which float
// products neither overflow nor vanish, and two methods to sum their outer products.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/row_units.hpp"
#include "eigenfeat/local_means.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/distance_kernels.hpp"

namespace eigenfeat {

template <class T>
class PairRows {
 public:
  PairRows(const LocalPairs<T>& pairs, int n_threads)
      : pairs_(pairs),
        same_(pairs.queries.data == pairs.references.data &&
              pairs.queries.rows == pairs.references.rows),
        units_(row_units(pairs.references, pairs.queries, same_, n_threads)),
        scale_(units_.peak.size(), T(1)),
        inverse_(units_.peak.size(), 1.0) {
    if constexpr (std::is_same_v<T, float>) choose_scales();
  }

  index_t d() const { return pairs_.references.cols; }
  index_t queries() const { return pairs_.queries.rows; }
  index_t classes() const { return pairs_.n_classes; }
  index_t own_class(index_t i) const { return pairs_.query_codes[i]; }
  const LocalPairs<T>& pairs() const { return pairs_; }
  const RowUnits& units() const { return units_; }
  bool same() const { return same_; }
  // Powers of two that multiply columns in products, and their inverses.
  const T* scale() const { return scale_.data(); }
  const double* inverse_scale() const { return inverse_.data(); }
  bool scaled() const { return any_scaled_; }

  const index_t* neighbours(index_t i, index_t c) const {
    return pairs_.neighbours.data + (i * pairs_.n_classes + c) * pairs_.n_neighbors;
  }
  index_t count(index_t i, index_t c) const {
    const index_t* list = neighbours(i, c);
    index_t n = 0;
    while (n < pairs_.n_neighbors && list[n] >= 0) ++n;
    return n;
  }

  // out = factor D_ij in the units of the columns, for columns [begin, end). If the class has no
  // neighbours, out is zero and the result false. rows: scratch for n_neighbors pointers.
  bool difference(index_t i, index_t c, T factor, index_t begin, index_t end, const T** rows,
                  T* out) const {
    const index_t n = count(i, c);
    if (n == 0) {
      std::fill(out, out + (end - begin), T(0));
      return false;
    }
    const index_t* list = neighbours(i, c);
    for (index_t r = 0; r < n; ++r) rows[r] = pairs_.references.row(list[r]) + begin;
    kernels<DistanceKernels<T>>().sum_of_differences(pairs_.queries.row(i) + begin, rows, n,
                                                     end - begin, out);
    const T share = factor / static_cast<T>(n);
    if (any_scaled_) {
      for (index_t j = begin; j < end; ++j) out[j - begin] = out[j - begin] * scale_[j] * share;
    } else {
      for (index_t j = 0; j < end - begin; ++j) out[j] *= share;
    }
    return true;
  }

 private:
  // Float products of 4,096 rows neither overflow nor vanish for magnitudes in [2^-40, 2^50].
  void choose_scales() {
    for (index_t j = 0; j < units_.peak.size(); ++j) {
      const double magnitude = units_.peak[j];
      if (magnitude == 0.0 || (magnitude > 0x1p-40 && magnitude < 0x1p50)) continue;
      any_scaled_ = true;
      const int exponent = std::max(std::ilogb(magnitude), -120);
      scale_[j] = static_cast<T>(std::ldexp(1.0, -exponent));
      inverse_[j] = std::ldexp(1.0, exponent);
    }
  }

  const LocalPairs<T>& pairs_;
  bool same_;
  RowUnits units_;
  Vector<T> scale_;
  Vector<double> inverse_;
  bool any_scaled_ = false;
};

// Sums of outer products by tiles of columns: the lower triangle (row-major) of a matrix of doubles.
// Products within a panel are T; panels are added in double, in order.
template <class T>
class TileSums {
 public:
  static constexpr index_t kTile = 192;  // columns of a tile

  TileSums(index_t d, int n_threads)
      : d_(d), tiles_((d + kTile - 1) / kTile), n_threads_(n_threads), scratch_(n_threads) {}

  struct Target {
    MatrixView<double> sum;
    double factor;
  };
  // sum += factor * panel^T panel for every target; panel (rows, d) row-major.
  void add(MatrixView<const T> panel, const double* inverse_scale, const Vector<Target>& targets);
  // sum += factor * left^T right for the tiles that have entries of the lower triangle. right
  // (rows, w) has the columns [first, first + w), and first is a multiple of kTile.
  void add_product(MatrixView<const T> left, MatrixView<const T> right, index_t first,
                   const double* inverse_scale, const Target& target);

 private:
  void add_tile(index_t i, index_t j, MatrixView<const T> product, const double* inverse_scale,
                const Target& target) const;

  index_t d_, tiles_;
  int n_threads_;
  PerThread<AlignedBuffer<T>> scratch_;
};

template <class T>
void scatters_by_rows(const PairRows<T>& rows, VectorView<const double> priors, bool with_weighted,
                      MatrixView<double> within, MatrixView<double> weighted, int n_threads);
template <class T>
void weighted_by_graph(const PairRows<T>& rows, VectorView<const double> priors,
                       MatrixView<double> weighted, int n_threads);

}  // namespace eigenfeat
