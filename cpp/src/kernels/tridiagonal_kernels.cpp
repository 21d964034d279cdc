#include "kernels/tridiagonal_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

using V = Line<double>::type;
constexpr index_t kLanes = kLane<double>;
constexpr index_t kColumns = 4;  // their factors stay in registers

EIGENFEAT_INLINE void load(const double* p, V& v) {
  std::memcpy(&v, p, sizeof v);
}

EIGENFEAT_INLINE void store(const V& v, double* p) {
  std::memcpy(p, &v, sizeof v);
}

EIGENFEAT_INLINE double total(const V& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// Vectors of one step, padded; entries of finished rows are 0.
struct Vectors {
  double* v;     // of the step before
  double* w;     // likewise
  double* next;  // to multiply by
  double* y;     // the product
};

// a: the columns' entries in the lines that cross the diagonal
EIGENFEAT_INLINE void cross_diagonal(double* a, index_t order, index_t column, const Vectors& at) {
  const index_t top = column / kLanes * kLanes;
  V v, w, y, entries;
  load(at.v + top, v);
  load(at.w + top, w);
  load(at.y + top, y);
  for (index_t k = 0; k < kColumns; ++k) {
    double* line = a + (column + k) * order + top;
    load(line, entries);
    entries -= v * at.w[column + k] + w * at.v[column + k];
    store(entries, line);
    y += entries * at.next[column + k];
  }
  store(y, at.y + top);
}

// Below the diagonal an entry stands for its mirror image too.
EIGENFEAT_INLINE void below_diagonal(double* a, index_t order, index_t column, const Vectors& at) {
  double of_v[kColumns], of_w[kColumns], of_next[kColumns];
  for (index_t k = 0; k < kColumns; ++k) {
    of_v[k] = at.v[column + k];
    of_w[k] = at.w[column + k];
    of_next[k] = at.next[column + k];
  }
  V sums[kColumns] = {}, v, w, next, y, entries;
  for (index_t i = column / kLanes * kLanes + kLanes; i < order; i += kLanes) {
    load(at.v + i, v);
    load(at.w + i, w);
    load(at.next + i, next);
    load(at.y + i, y);
    for (index_t k = 0; k < kColumns; ++k) {
      double* line = a + (column + k) * order + i;
      load(line, entries);
      entries -= v * of_w[k] + w * of_v[k];
      store(entries, line);
      y += entries * of_next[k];
      sums[k] += entries * next;
    }
    store(y, at.y + i);
  }
  for (index_t k = 0; k < kColumns; ++k) at.y[column + k] += total(sums[k]);
}

struct Reflection {
  double tau = 0.0, left = 0.0;  // what is left of x, in its first entry
};

EIGENFEAT_INLINE double sum_of_squares(const double* x, index_t n) {
  V sum{}, entries;
  for (index_t i = 0; i < n; i += kLanes) {
    load(x + i, entries);
    sum += entries * entries;
  }
  return total(sum);
}

// x: `order` numbers, zeros before `first`. On return v, with v[first] = 1.
EIGENFEAT_INLINE Reflection reflection(double* x, index_t first, index_t order) {
  constexpr double kSmall = 1e-280, kUp = 0x1p800, kDown = 0x1p-800;
  const index_t start = first / kLanes * kLanes;
  const double alpha = x[first];
  x[first] = 0.0;
  double rest = sum_of_squares(x + start, order - start), scale = 1.0, unit = alpha;
  if (rest < kSmall) {  // squares may have underflowed
    for (index_t i = start; i < order; ++i) x[i] *= kUp;
    rest = sum_of_squares(x + start, order - start);
    if (rest == 0.0) {
      x[first] = 1.0;
      return {0.0, alpha};
    }
    // Where alpha is far larger, x / alpha is next to nothing in either unit.
    if (std::fabs(alpha) < 1e-100) {
      unit = alpha * kUp;
      scale = kDown;
    } else {
      for (index_t i = start; i < order; ++i) x[i] *= kDown;
      rest = 0.0;
    }
  }
  const double length = std::sqrt(unit * unit + rest);
  const double left = unit > 0.0 ? -length : length;
  const double factor = 1.0 / (unit - left);
  for (index_t i = start; i < order; ++i) x[i] *= factor;
  x[first] = 1.0;
  return {(left - unit) / left, left * scale};
}

// w = tau (y - tau / 2 (y^T v) v), from `first` on.
EIGENFEAT_INLINE void second_vector(double tau, const double* v, const double* y, index_t first,
                                    index_t order, double* w) {
  const index_t start = first / kLanes * kLanes;
  V sum{}, of_v, of_y;
  for (index_t i = start; i < order; i += kLanes) {
    load(v + i, of_v);
    load(y + i, of_y);
    sum += of_v * of_y;
  }
  const double along = 0.5 * tau * total(sum);
  for (index_t i = start; i < order; i += kLanes) {
    load(v + i, of_v);
    load(y + i, of_y);
    store(tau * (of_y - along * of_v), w + i);
  }
  std::fill(w + start, w + first, 0.0);  // y has sums of finished rows there
}

}  // namespace

EIGENFEAT_CLONES
void tridiagonalise(double* a, index_t d, double* diagonal, double* off, double* tau,
                    double* scratch) {
  const index_t order = padded_order(d);
  Vectors at{scratch, scratch + order, scratch + 2 * order, scratch + 3 * order};
  std::fill(scratch, scratch + 4 * order, 0.0);
  std::copy(a, a + d, at.next);
  for (index_t k = 0;; ++k) {
    // `next` is column k, brought up to date.
    diagonal[k] = at.next[k];
    if (k + 1 == d) return;
    at.next[k] = 0.0;
    at.v[k] = at.w[k] = 0.0;
    const Reflection found = reflection(at.next, k + 1, order);
    off[k] = found.left;
    tau[k] = found.tau;
    std::copy(at.next + k + 1, at.next + d, a + k * order + k + 1);
    const index_t start = (k + 1) / kLanes * kLanes;
    std::fill(at.y + start, at.y + order, 0.0);
    for (index_t column = (k + 1) / kColumns * kColumns; column < order; column += kColumns) {
      cross_diagonal(a, order, column, at);
      below_diagonal(a, order, column, at);
    }
    std::swap(at.v, at.next);
    second_vector(found.tau, at.v, at.y, k + 1, order, at.w);
    const double factor = at.w[k + 1];  // v[k + 1] = 1
    const double* column = a + (k + 1) * order;
    std::fill(at.next + start, at.next + k + 1, 0.0);
    for (index_t i = k + 1; i < order; ++i) at.next[i] = column[i] - (at.v[i] * factor + at.w[i]);
  }
}

}  // namespace eigenfeat
