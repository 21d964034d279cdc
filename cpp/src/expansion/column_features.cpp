#include "eigenfeat/column_features.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kSamples = 64;  // samples of a block, whose numbers stay in the cache
constexpr index_t kMinKnots = 2 * (kSplineDegree + 1);  // fewest knots of a column

// Number of entries at most x among n ascending numbers; no branch depends on x.
template <class T>
index_t count_at_most(const T* numbers, index_t n, T x) {
  if (n == 0) return 0;
  const T* first = numbers;
  while (n > 1) {
    const index_t half = n / 2;
    first += static_cast<index_t>(first[half - 1] <= x) * half;
    n -= half;
  }
  return first - numbers + static_cast<index_t>(*first <= x);
}

// F(x) of `size` quantiles q and their shares.
template <class T>
double distribution(const T* q, const double* shares, index_t size, T x) {
  const index_t above = count_at_most(q, size, x);
  if (above == 0) return shares[0];
  if (above == size) return shares[size - 1];
  const T low = q[above - 1], high = q[above];
  const double way = static_cast<double>((x - low) / (high - low));
  return shares[above - 1] + way * (shares[above] - shares[above - 1]);
}

// h <- values at x of the splines that are nonzero in [t[l], t[l + 1]].
void de_boor(const double* t, index_t l, double x, double* h) {
  h[0] = 1.0;
  for (index_t j = 1; j <= kSplineDegree; ++j) {
    double carried = 0.0;
    for (index_t i = 1; i <= j; ++i) {
      const double high = t[l + i], low = t[l + i - j];
      const double w = high > low ? h[i - 1] / (high - low) : 0.0;
      h[i - 1] = carried + w * (high - x);
      carried = w * (x - low);
    }
    h[j] = carried;
  }
}

template <class T>
void spline_values(const double* t, index_t n_knots, T number, float* out) {
  const index_t count =
      n_knots - kSplineDegree - 1;  // including the last spline, which is left out
  double x = std::max(static_cast<double>(number), t[kSplineDegree]);
  x = std::min(x, t[count]);
  index_t l = kSplineDegree;
  for (index_t i = kSplineDegree + 1; i < count; ++i) l += static_cast<index_t>(t[i] <= x);
  double h[kSplineDegree + 1];
  de_boor(t, l, x, h);
  std::fill(out, out + count - 1, 0.0F);
  for (index_t i = 0; i <= kSplineDegree; ++i) {
    const index_t place = l - kSplineDegree + i;
    if (place < count - 1) out[place] = static_cast<float>(h[i]);
  }
}

template <class T>
void check_columns(MatrixView<const T> x, VectorView<const index_t> columns) {
  require(x.is_row_major(), "x", "row-major storage", shape_text(x));
  for (index_t c = 0; c < columns.size; ++c) {
    require(0 <= columns[c] && columns[c] < x.cols, "columns",
            "numbers of the " + std::to_string(x.cols) + " columns", std::to_string(columns[c]));
  }
}

// Checks that starts divide `size` entries into ranges of at least `fewest` entries for each column.
void check_starts(VectorView<const index_t> starts, index_t count, index_t size, index_t fewest,
                  const char* entries) {
  require(starts.size == count + 1, "starts", std::to_string(count + 1) + " entries",
          std::to_string(starts.size));
  require(starts[0] == 0 && starts[count] == size, "starts",
          "0 first and " + std::to_string(size) + " last", std::to_string(starts[count]));
  for (index_t c = 0; c < count; ++c) {
    const index_t next = starts[c + 1];  // compared before subtraction, which might overflow
    require(next >= 0 && next <= size && next - starts[c] >= fewest, "starts",
            "at least " + std::to_string(fewest) + " " + entries + " of each column",
            std::to_string(starts[c]) + " before " + std::to_string(next));
  }
}

}  // namespace

template <class T>
void column_ranks(MatrixView<const T> x, VectorView<const index_t> columns,
                  MatrixView<const T> quantiles, MatrixView<const double> shares,
                  MatrixView<float> ranks, int n_threads) {
  const index_t n = x.rows, count = columns.size, size = quantiles.cols;
  check_columns(x, columns);
  require(quantiles.rows == count && quantiles.is_row_major() && (size >= 1 || count == 0),
          "quantiles", "at least one of each of " + std::to_string(count) + " columns",
          shape_text(quantiles));
  require(shares.rows == count && shares.cols == size && shares.is_row_major(), "shares",
          shape_text(count, size), shape_text(shares));
  require(ranks.rows == n && ranks.cols == count && ranks.is_row_major(), "ranks",
          shape_text(n, count), shape_text(ranks));
  const double unit = std::sqrt(12.0);
  const double work = 50.0 * static_cast<double>(n) * static_cast<double>(count);
  for_ranges(n, kSamples, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t c = 0; c < count; ++c) {
      for (index_t i = begin; i < end; ++i) {
        const double share = distribution(quantiles.row(c), shares.row(c), size, x(i, columns[c]));
        ranks(i, c) = static_cast<float>(unit * (share - 0.5));
      }
    }
  });
}

template <class T>
void column_bins(MatrixView<const T> x, VectorView<const index_t> columns,
                 VectorView<const double> edges, VectorView<const index_t> starts,
                 MatrixView<index_t> bins, int n_threads) {
  const index_t n = x.rows, count = columns.size;
  check_columns(x, columns);
  check_starts(starts, count, edges.size, 0, "edges");
  require(bins.rows == n && bins.cols == count && bins.is_row_major(), "bins", shape_text(n, count),
          shape_text(bins));
  const double work = 10.0 * static_cast<double>(n) * static_cast<double>(count);
  for_ranges(n, kSamples, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t c = 0; c < count; ++c) {
      const double* first = edges.data + starts[c];
      const index_t size = starts[c + 1] - starts[c];
      for (index_t i = begin; i < end; ++i)
        bins(i, c) = count_at_most(first, size, static_cast<double>(x(i, columns[c])));
    }
  });
}

template <class T>
void column_splines(MatrixView<const T> x, VectorView<const index_t> columns,
                    VectorView<const double> knots, VectorView<const index_t> starts,
                    MatrixView<float> out, int n_threads) {
  const index_t n = x.rows, count = columns.size;
  check_columns(x, columns);
  check_starts(starts, count, knots.size, kMinKnots, "knots");
  const index_t width = knots.size - count * (kSplineDegree + 2);
  require(out.rows == n && out.cols == width && out.is_row_major(), "out", shape_text(n, width),
          shape_text(out));
  const double work = 60.0 * static_cast<double>(n) * static_cast<double>(count);
  for_ranges(n, kSamples, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t c = 0; c < count; ++c) {
      const double* t = &knots[starts[c]];
      const index_t n_knots = starts[c + 1] - starts[c];
      const index_t first = starts[c] - c * (kSplineDegree + 2);
      for (index_t i = begin; i < end; ++i)
        spline_values(t, n_knots, x(i, columns[c]), out.row(i) + first);
    }
  });
}

#define EIGENFEAT_INSTANTIATE(T)                                                                  \
  template void column_ranks<T>(MatrixView<const T>, VectorView<const index_t>,                   \
                                MatrixView<const T>, MatrixView<const double>, MatrixView<float>, \
                                int);                                                             \
  template void column_bins<T>(MatrixView<const T>, VectorView<const index_t>,                    \
                               VectorView<const double>, VectorView<const index_t>,               \
                               MatrixView<index_t>, int);                                         \
  template void column_splines<T>(MatrixView<const T>, VectorView<const index_t>,                 \
                                  VectorView<const double>, VectorView<const index_t>,            \
                                  MatrixView<float>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
