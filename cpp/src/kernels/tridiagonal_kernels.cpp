#include "kernels/tridiagonal_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

using V = Vec<double>;
constexpr index_t kLanes = kWidth<double>;
// Number of columns whose factors stay in registers.
constexpr index_t kColumns = kRegisters == 32 ? 4 : 2;
// Rows that cross the diagonal in a group of columns.
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

// Padded vectors of one step; entries of finished rows are 0.
struct Vectors {
  double* v;     // v of the previous step
  double* w;     // w of the previous step
  double* next;  // vector to multiply
  double* y;     // product
};

// a: entries of the columns in rows that cross the diagonal
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

// An entry below the diagonal also represents its mirror image.
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
  double tau = 0.0, left = 0.0;  // left: first entry of the reflected x
};

// Rows of vectors are padded to whole lines; kPerLine partial sums hide the latency of an addition.
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

// x: `order` numbers, zeros before `first`; on return it has v, with v[first] = 1.
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
    // If alpha is far larger, x / alpha is negligible in either unit.
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
  fill(w, start, first, 0.0);  // these entries of y are sums of finished rows
}

void tridiagonalise(double* a, index_t d, double* diagonal, double* off, double* tau,
                    double* scratch) {
  const index_t order = (d + kLane<double> - 1) / kLane<double> * kLane<double>;
  Vectors at{scratch, scratch + order, scratch + 2 * order, scratch + 3 * order};
  fill(scratch, 0, 4 * order, 0.0);
  for (index_t i = 0; i < d; ++i) at.next[i] = a[i];
  for (index_t k = 0;; ++k) {
    // `next` is column k after the previous update.
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

// Bits of a vector, to read signs and exponents.
typedef std::uint64_t Bits __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));

template <index_t kCount>
EIGENFEAT_INLINE void count_vectors(const double* diagonal, const double* squares, index_t d,
                                    const double* shifts, double* below) {
  // Steps between two scalings. A step multiplies a pair by at most 3. Its determinant, one of
  // `squares`, is at least 1e-40, so that after eight steps one number of the pair exceeds 1e-290.
  constexpr index_t kSteps = 8;
  constexpr std::uint64_t kSign = 63, kExponent = 52, kTwiceBias = 2046;
  V shift[kCount], minor[kCount], before[kCount];
  Bits changes[kCount] = {};
  for (index_t k = 0; k < kCount; ++k) {
    shift[k] = load(shifts + k * kLanes);
    before[k] = V{} + 1.0;
    minor[k] = diagonal[0] - shift[k];
    changes[k] += reinterpret_cast<Bits>(minor[k]) >> kSign;
  }
  for (index_t i = 1; i < d;) {
    const index_t end = least(d, i + kSteps);
    for (; i < end; ++i) {
      for (index_t k = 0; k < kCount; ++k) {
        const V next = (diagonal[i] - shift[k]) * minor[k] - squares[i - 1] * before[k];
        before[k] = minor[k];
        minor[k] = next;
        changes[k] += (reinterpret_cast<Bits>(next) ^ reinterpret_cast<Bits>(before[k])) >> kSign;
      }
    }
    for (index_t k = 0; k < kCount; ++k) {
      const V first = minor[k] < 0.0 ? -minor[k] : minor[k];
      const V second = before[k] < 0.0 ? -before[k] : before[k];
      const V larger = first > second ? first : second;
      const V scale = reinterpret_cast<V>(
          (kTwiceBias - (reinterpret_cast<Bits>(larger) >> kExponent)) << kExponent);
      minor[k] *= scale;
      before[k] *= scale;
    }
  }
  for (index_t k = 0; k < kCount; ++k) {
    std::uint64_t counts[kLanes];
    __builtin_memcpy(counts, &changes[k], sizeof counts);
    for (index_t l = 0; l < kLanes; ++l) below[k * kLanes + l] = static_cast<double>(counts[l]);
  }
}

void count_below(const double* diagonal, const double* squares, index_t d, const double* shifts,
                 index_t n_shifts, double* below) {
  constexpr index_t kAtOnce = kRegisters == 32 ? 4 : 2;
  index_t s = 0;
  for (; s + kAtOnce * kLanes <= n_shifts; s += kAtOnce * kLanes)
    count_vectors<kAtOnce>(diagonal, squares, d, shifts + s, below + s);
  for (; s < n_shifts; s += kLanes) count_vectors<1>(diagonal, squares, d, shifts + s, below + s);
}

// Lines of a row: 1 / pivot, the two entries to its right, the multiplier of the row below, and
// whether the two rows were exchanged.
void factorise(const double* diagonal, const double* off, index_t d, double smallest,
               const double* shifts, double* factors) {
  constexpr index_t kLine = kLane<double>, kRow = kFactorLines * kLine;
  for (index_t lane = 0; lane < kLine; lane += kLanes) {
    const V shift = load(shifts + lane), zero = {}, one = zero + 1.0, low = zero + smallest;
    V pivot = diagonal[0] - shift, right = zero + (d > 1 ? off[0] : 0.0);
    for (index_t i = 0; i + 1 < d; ++i) {
      double* row = factors + i * kRow + lane;
      const V under = zero + off[i], under_right = diagonal[i + 1] - shift;
      const V under_second = zero + (i + 2 < d ? off[i + 1] : 0.0);
      const V size = pivot < 0.0 ? -pivot : pivot, under_size = under < 0.0 ? -under : under;
      const auto exchanged = under_size > size;
      const V chosen = exchanged ? under : pivot, other = exchanged ? pivot : under;
      const V chosen_right = exchanged ? under_right : right;
      const V chosen_second = exchanged ? under_second : zero;
      const V other_right = exchanged ? right : under_right;
      const V other_second = exchanged ? zero : under_second;
      const V chosen_size = exchanged ? under_size : size;
      const V inverse = 1.0 / (chosen_size < low ? low : chosen);
      const V multiplier = other * inverse;
      store<double>(inverse, row);
      store<double>(chosen_right, row + kLine);
      store<double>(chosen_second, row + 2 * kLine);
      store<double>(multiplier, row + 3 * kLine);
      store<double>(exchanged ? one : zero, row + 4 * kLine);
      pivot = other_right - multiplier * chosen_right;
      right = other_second - multiplier * chosen_second;
    }
    double* row = factors + (d - 1) * kRow + lane;
    const V size = pivot < 0.0 ? -pivot : pivot;
    store<double>(1.0 / (size < low ? low : pivot), row);
  }
}

void solve(const double* factors, index_t d, bool all, double* x) {
  constexpr index_t kLine = kLane<double>, kRow = kFactorLines * kLine;
  for (index_t lane = 0; lane < kLine; lane += kLanes) {
    const double* const first = factors + lane;
    double* const own = x + lane;
    if (all) {
      V entry = load(own);
      for (index_t i = 0; i + 1 < d; ++i) {
        const double* row = first + i * kRow;
        const V next = load(own + (i + 1) * kLine);
        const auto exchanged = load(row + 4 * kLine) > 0.5;
        const V upper = exchanged ? next : entry, lower = exchanged ? entry : next;
        store<double>(upper, own + i * kLine);
        entry = lower - load(row + 3 * kLine) * upper;
      }
      store<double>(entry, own + (d - 1) * kLine);
    }
    V after = {}, second = {}, sum = {};
    for (index_t i = d - 1; i >= 0; --i) {
      const double* row = first + i * kRow;
      V entry = load(own + i * kLine);
      if (i + 1 < d) entry -= load(row + kLine) * after + load(row + 2 * kLine) * second;
      entry *= load(row);
      store<double>(entry, own + i * kLine);
      sum += entry * entry;
      second = after;
      after = entry;
    }
    double scales[kLanes];
    store<double>(sum, scales);
    for (index_t l = 0; l < kLanes; ++l) scales[l] = 1.0 / square_root(scales[l]);
    const V scale = load(scales);
    for (index_t i = 0; i < d; ++i) store<double>(load(own + i * kLine) * scale, own + i * kLine);
  }
}

void reflect(const double* a, index_t d, const double* tau, double* x) {
  constexpr index_t kLine = kLane<double>, kSums = 4;
  const index_t order = (d + kLine - 1) / kLine * kLine;
  for (index_t lane = 0; lane < kLine; lane += kLanes) {
    double* const own = x + lane;
    for (index_t i = d - 2; i >= 0; --i) {
      const double* v = a + i * order;
      V sums[kSums] = {};
      index_t r = i + 2;
      for (; r + kSums <= d; r += kSums) {
        for (index_t k = 0; k < kSums; ++k) sums[k] += v[r + k] * load(own + (r + k) * kLine);
      }
      for (; r < d; ++r) sums[0] += v[r] * load(own + r * kLine);
      const V top = load(own + (i + 1) * kLine);
      const V along = tau[i] * (top + ((sums[0] + sums[1]) + (sums[2] + sums[3])));
      store<double>(top - along, own + (i + 1) * kLine);
      for (r = i + 2; r < d; ++r)
        store<double>(load(own + r * kLine) - v[r] * along, own + r * kLine);
    }
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(TridiagonalKernels) = [] {
  TridiagonalKernels table{};
  table.reduce = EIGENFEAT_TIER::tridiagonalise;
  table.count_below = EIGENFEAT_TIER::count_below;
  table.factorise = EIGENFEAT_TIER::factorise;
  table.solve = EIGENFEAT_TIER::solve;
  table.reflect = EIGENFEAT_TIER::reflect;
  return table;
}();

}  // namespace eigenfeat
