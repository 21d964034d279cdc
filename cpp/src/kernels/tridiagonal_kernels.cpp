#include "kernels/tridiagonal_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

using V = Vec<double>;
constexpr index_t kLanes = kWidth<double>;
// Their factors stay in registers.
constexpr index_t kColumns = kRegisters == 32 ? 4 : 2;
// Rows that cross the diagonal of so many columns.
constexpr index_t kCross = kLanes > kColumns ? kLanes : kColumns;

EIGENFEAT_INLINE double total(const V* sums, index_t n) {
  V sum = sums[0];
  for (index_t i = 1; i < n; ++i) sum += sums[i];
  double parts[kLanes], result = 0.0;
  store<double>(sum, parts);
  if constexpr (kLanes == 8) return sum_of_line(parts);
  for (index_t i = 0; i < kLanes; ++i) result += parts[i];
  return result;
}

// Vectors of one step, padded; entries of finished rows are 0.
struct Vectors {
  double* v;     // of the step before
  double* w;     // likewise
  double* next;  // to multiply by
  double* y;     // the product
};

// a: the columns' entries in the rows that cross the diagonal
EIGENFEAT_INLINE void cross_diagonal(double* a, index_t order, index_t column, const Vectors& at) {
  const index_t top = column / kCross * kCross;
  for (index_t i = top; i < top + kCross; i += kLanes) {
    const V v = load(at.v + i), w = load(at.w + i);
    V y = load(at.y + i);
    for (index_t k = 0; k < kColumns; ++k) {
      double* line = a + (column + k) * order + i;
      V entries = load(line);
      entries -= v * at.w[column + k] + w * at.v[column + k];
      store<double>(entries, line);
      y += entries * at.next[column + k];
    }
    store<double>(y, at.y + i);
  }
}

// Below the diagonal an entry stands for its mirror image too.
EIGENFEAT_INLINE void below_diagonal(double* a, index_t order, index_t column, const Vectors& at) {
  double of_v[kColumns], of_w[kColumns], of_next[kColumns];
  for (index_t k = 0; k < kColumns; ++k) {
    of_v[k] = at.v[column + k];
    of_w[k] = at.w[column + k];
    of_next[k] = at.next[column + k];
  }
  V sums[kColumns] = {};
  for (index_t i = column / kCross * kCross + kCross; i < order; i += kLanes) {
    const V v = load(at.v + i), w = load(at.w + i), next = load(at.next + i);
    V y = load(at.y + i);
    for (index_t k = 0; k < kColumns; ++k) {
      double* line = a + (column + k) * order + i;
      V entries = load(line);
      entries -= v * of_w[k] + w * of_v[k];
      store<double>(entries, line);
      y += entries * of_next[k];
      sums[k] += entries * next;
    }
    store<double>(y, at.y + i);
  }
  for (index_t k = 0; k < kColumns; ++k) at.y[column + k] += total(sums + k, 1);
}

struct Reflection {
  double tau = 0.0, left = 0.0;  // what is left of x, in its first entry
};

// Rows of vectors are padded to whole lines: kPerLine sums at a time hide an addition's latency.
EIGENFEAT_INLINE double inner(const double* x, const double* y, index_t n) {
  V sums[kPerLine] = {};
  for (index_t i = 0; i < n; i += kPerLine * kLanes) {
    for (index_t k = 0; k < kPerLine; ++k)
      sums[k] += load(x + i + k * kLanes) * load(y + i + k * kLanes);
  }
  return total(sums, kPerLine);
}

EIGENFEAT_INLINE void fill(double* x, index_t first, index_t last, double value) {
  for (index_t i = first; i < last; ++i) x[i] = value;
}

// x: `order` numbers, zeros before `first`. On return v, with v[first] = 1.
EIGENFEAT_INLINE Reflection reflection(double* x, index_t first, index_t order) {
  constexpr double kSmall = 1e-280, kUp = 0x1p800, kDown = 0x1p-800;
  const index_t start = first / kLane<double> * kLane<double>;
  const double alpha = x[first];
  x[first] = 0.0;
  double rest = inner(x + start, x + start, order - start), scale = 1.0, unit = alpha;
  if (rest < kSmall) {  // squares may have underflowed
    for (index_t i = start; i < order; ++i) x[i] *= kUp;
    rest = inner(x + start, x + start, order - start);
    if (rest == 0.0) {
      x[first] = 1.0;
      return {0.0, alpha};
    }
    // Where alpha is far larger, x / alpha is next to nothing in either unit.
    if (magnitude(alpha) < 1e-100) {
      unit = alpha * kUp;
      scale = kDown;
    } else {
      for (index_t i = start; i < order; ++i) x[i] *= kDown;
      rest = 0.0;
    }
  }
  const double length = square_root(unit * unit + rest);
  const double left = unit > 0.0 ? -length : length;
  const double factor = 1.0 / (unit - left);
  for (index_t i = start; i < order; ++i) x[i] *= factor;
  x[first] = 1.0;
  return {(left - unit) / left, left * scale};
}

// w = tau (y - tau / 2 (y^T v) v), from `first` on.
EIGENFEAT_INLINE void second_vector(double tau, const double* v, const double* y, index_t first,
                                    index_t order, double* w) {
  const index_t start = first / kLane<double> * kLane<double>;
  const double along = 0.5 * tau * inner(v + start, y + start, order - start);
  for (index_t i = start; i < order; i += kLanes)
    store<double>(tau * (load(y + i) - along * load(v + i)), w + i);
  fill(w, start, first, 0.0);  // y has sums of finished rows there
}

void tridiagonalise(double* a, index_t d, double* diagonal, double* off, double* tau,
                    double* scratch) {
  const index_t order = (d + kLane<double> - 1) / kLane<double> * kLane<double>;
  Vectors at{scratch, scratch + order, scratch + 2 * order, scratch + 3 * order};
  fill(scratch, 0, 4 * order, 0.0);
  for (index_t i = 0; i < d; ++i) at.next[i] = a[i];
  for (index_t k = 0;; ++k) {
    // `next` is column k, brought up to date.
    diagonal[k] = at.next[k];
    if (k + 1 == d) return;
    at.next[k] = 0.0;
    at.v[k] = at.w[k] = 0.0;
    const Reflection found = reflection(at.next, k + 1, order);
    off[k] = found.left;
    tau[k] = found.tau;
    for (index_t i = k + 1; i < d; ++i) a[k * order + i] = at.next[i];
    const index_t start = (k + 1) / kLane<double> * kLane<double>;
    fill(at.y, start, order, 0.0);
    for (index_t column = (k + 1) / kColumns * kColumns; column < order; column += kColumns) {
      cross_diagonal(a, order, column, at);
      below_diagonal(a, order, column, at);
    }
    double* spare = at.v;
    at.v = at.next;
    at.next = spare;
    second_vector(found.tau, at.v, at.y, k + 1, order, at.w);
    const double factor = at.w[k + 1];  // v[k + 1] = 1
    const double* column = a + (k + 1) * order;
    fill(at.next, start, k + 1, 0.0);
    for (index_t i = k + 1; i < order; ++i) at.next[i] = column[i] - (at.v[i] * factor + at.w[i]);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(TridiagonalKernels) = [] {
  TridiagonalKernels table{};
  table.reduce = EIGENFEAT_TIER::tridiagonalise;
  return table;
}();

}  // namespace eigenfeat
