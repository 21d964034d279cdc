#include "eigenfeat/column_features.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kSamples = 64;  // of a block, whose numbers stay in the cache
constexpr index_t kFewestKnots = 2 * (kSplineDegree + 1);

// How many of n ascending numbers, at least one, are `before` x; no branch depends on x.
template <class T, class Before>
index_t count_of(const T* numbers, index_t n, T x, Before before) {
  const T* first = numbers;
  while (n > 1) {
    const index_t half = n / 2;
    first += static_cast<index_t>(before(first[half - 1], x)) * half;
    n -= half;
  }
  return first - numbers + static_cast<index_t>(before(*first, x));
}

// F(x), linear before quantile number `above`.
template <class T>
double distribution(const T* q, index_t last, T x, index_t above) {
  if (above < 1) return 0.0;
  if (above > last) return 1.0;
  const T low = q[above - 1], high = q[above];
  const T share = (x - low) / (high > low ? high - low : T(1));
  return (static_cast<double>(above - 1) + static_cast<double>(share)) / static_cast<double>(last);
}

// h <- the splines of interval [t[l], t[l + 1]] at x.
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
  const index_t count = n_knots - kSplineDegree - 1;  // with the last, which is left out
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

}  // namespace

template <class T>
void column_ranks(MatrixView<const T> x, VectorView<const index_t> columns,
                  MatrixView<const T> quantiles, MatrixView<index_t> above, MatrixView<float> ranks,
                  int n_threads) {
  const index_t n = x.rows, count = columns.size, size = quantiles.cols;
  check_columns(x, columns);
  require(quantiles.rows == count && quantiles.is_row_major() && (size >= 2 || count == 0),
          "quantiles", "at least two of each of " + std::to_string(count) + " columns",
          shape_text(quantiles));
  require(above.rows == n && above.cols == count && above.is_row_major(), "above",
          shape_text(n, count), shape_text(above));
  require(ranks.rows == n && ranks.cols == count && ranks.is_row_major(), "ranks",
          shape_text(n, count), shape_text(ranks));
  const double unit = std::sqrt(12.0);
  const auto at_most = [](T a, T b) { return a <= b; };
  const auto below = [](T a, T b) { return a < b; };
  const double work = 50.0 * static_cast<double>(n) * static_cast<double>(count);
  for_ranges(n, kSamples, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t c = 0; c < count; ++c) {
      const T* q = quantiles.row(c);
      for (index_t i = begin; i < end; ++i) {
        const T value = x(i, columns[c]);
        const index_t i_above = count_of(q, size, value, at_most);
        double share = distribution(q, size - 1, value, i_above);
        if (i_above > 0 && q[i_above - 1] == value) {
          const index_t i_below = count_of(q, size, value, below);
          share = (share + distribution(q, size - 1, value, i_below)) / 2;
        }
        above(i, c) = i_above;
        ranks(i, c) = static_cast<float>(unit * (share - 0.5));
      }
    }
  });
}

template <class T>
void column_splines(MatrixView<const T> x, VectorView<const index_t> columns,
                    VectorView<const double> knots, VectorView<const index_t> starts,
                    MatrixView<float> out, int n_threads) {
  const index_t n = x.rows, count = columns.size;
  check_columns(x, columns);
  require(starts.size == count + 1, "starts", std::to_string(count + 1) + " entries",
          std::to_string(starts.size));
  require(starts[0] == 0 && starts[count] == knots.size, "starts",
          "0 first and " + std::to_string(knots.size) + " last", std::to_string(starts[count]));
  for (index_t c = 0; c < count; ++c) {
    require(starts[c + 1] - starts[c] >= kFewestKnots, "starts",
            "at least " + std::to_string(kFewestKnots) + " knots of each column",
            std::to_string(starts[c + 1] - starts[c]));
  }
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

#define EIGENFEAT_INSTANTIATE(T)                                                                   \
  template void column_ranks<T>(MatrixView<const T>, VectorView<const index_t>,                    \
                                MatrixView<const T>, MatrixView<index_t>, MatrixView<float>, int); \
  template void column_splines<T>(MatrixView<const T>, VectorView<const index_t>,                  \
                                  VectorView<const double>, VectorView<const index_t>,             \
                                  MatrixView<float>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
