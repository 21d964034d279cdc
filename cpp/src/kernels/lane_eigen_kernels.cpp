#include "kernels/lane_eigen_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {
namespace {

using V = Vec<double>;
using Mask = Register<double>::integers;

constexpr index_t kLanes = kWidth<double>;
constexpr index_t kRows = kRegisters >= 32 ? 4 : 2;  // of a block in the reduction
constexpr index_t kWalk = kRegisters >= 32 ? 8 : 4;  // rows that rotations walk through together
constexpr index_t kSide = kRegisters >= 32 ? 4 : 2;  // of a block of a product
constexpr index_t kHeld = 4;                         // sweeps whose rotations wait
constexpr double kUnit = 1.1102230246251565e-16;     // 2^-53
constexpr double kSmallest = 2.2250738585072014e-308;
constexpr index_t kMostSweeps = 30;  // for each eigenvalue; fewer than 2 are usual

EIGENFEAT_INLINE V get(const double* from) {
  return load(from);
}
EIGENFEAT_INLINE void put(const V& v, double* to) {
  store<double>(v, to);
}
EIGENFEAT_INLINE V all(double x) {
  return V{} + x;
}
EIGENFEAT_INLINE V choose(const Mask& mask, const V& yes, const V& no) {
  return mask ? yes : no;
}
EIGENFEAT_INLINE V roots(const V& v) {
  V out = v;
  for (index_t l = 0; l < kLanes; ++l) out[l] = __builtin_sqrt(v[l]);
  return out;
}
EIGENFEAT_INLINE V magnitudes(const V& v) {
  return v < V{} ? -v : v;
}
EIGENFEAT_INLINE bool any(const Mask& mask) {
  std::int64_t found = 0;
  for (index_t l = 0; l < kLanes; ++l) found |= mask[l];
  return found != 0;
}

// One matrix row by row, kLanes numbers each.
struct Matrix {
  double* data;
  index_t n, stride;
  EIGENFEAT_INLINE double* at(index_t i, index_t j) const {
    return data + (i * stride + j) * kLanes;
  }
};

// Rows lie an odd number of vectors apart: of an even number, those of a column would share few sets
// of the cache.
EIGENFEAT_INLINE index_t stride_of(index_t n) {
  return n | 1;
}

// Rows [i, i + R) of the trailing matrix from column `first` on, below and on the diagonal: the last
// step's update A -= v w^T + w v^T, and the products p = A u of this step with what comes out.
template <index_t R>
EIGENFEAT_INLINE void update_rows(const Matrix& a, index_t i, index_t first, const double* v,
                                  const double* w, const double* u, double* p) {
  V vi[R], wi[R], ui[R], sum[R];
  for (index_t r = 0; r < R; ++r) {
    vi[r] = get(v + (i + r) * kLanes);
    wi[r] = get(w + (i + r) * kLanes);
    ui[r] = get(u + (i + r) * kLanes);
    sum[r] = V{};
  }
  for (index_t j = first; j < i; ++j) {
    const V vj = get(v + j * kLanes), wj = get(w + j * kLanes), uj = get(u + j * kLanes);
    V below = get(p + j * kLanes);
    for (index_t r = 0; r < R; ++r) {
      double* entry = a.at(i + r, j);
      const V x = get(entry) - vi[r] * wj - wi[r] * vj;
      put(x, entry);
      sum[r] += x * uj;
      below += x * ui[r];
    }
    put(below, p + j * kLanes);
  }
  for (index_t r = 0; r < R; ++r) {
    for (index_t s = 0; s <= r; ++s) {
      double* entry = a.at(i + r, i + s);
      const V x = get(entry) - vi[r] * wi[s] - wi[r] * vi[s];
      put(x, entry);
      sum[r] += x * ui[s];
      if (s < r) sum[s] += x * ui[r];
    }
  }
  for (index_t r = 0; r < R; ++r) put(get(p + (i + r) * kLanes) + sum[r], p + (i + r) * kLanes);
}

// A = Q T Q^T by Householder reflections H = I - beta u u^T from the first column on; u stays below
// the diagonal of its column, beta in `betas`. Each step's update is made in the next one's pass.
void reduce(const Matrix& a, double* d, double* e, double* betas, double* v, double* w, double* u,
            double* p) {
  const index_t n = a.n;
  for (index_t i = 0; i < n * kLanes; ++i) v[i] = w[i] = 0.0;
  for (index_t k = 0; k + 1 < n; ++k) {
    // column k as it is after the last update
    const V vk = get(v + k * kLanes), wk = get(w + k * kLanes);
    V squares = V{};
    for (index_t i = k; i < n; ++i) {
      const V x = get(a.at(i, k)) - get(v + i * kLanes) * wk - get(w + i * kLanes) * vk;
      put(x, a.at(i, k));
      if (i > k + 1) squares += x * x;
    }
    put(get(a.at(k, k)), d + k * kLanes);
    const V x = get(a.at(k + 1, k));
    const Mask reflects = squares > all(kSmallest);
    const V norm = roots(x * x + squares);
    const V alpha = x > V{} ? -norm : norm;
    const V head = x - alpha;
    // u is scaled to u_1 = 1: beta = -head / alpha
    const V inverse = choose(reflects, 1.0 / choose(reflects, head, all(1.0)), V{});
    const V beta = choose(reflects, -head / choose(reflects, alpha, all(1.0)), V{});
    put(choose(reflects, alpha, x), e + k * kLanes);
    put(beta, betas + k * kLanes);
    put(all(1.0), u + (k + 1) * kLanes);
    put(all(1.0), a.at(k + 1, k));
    for (index_t i = k + 2; i < n; ++i) {
      const V entry = get(a.at(i, k)) * inverse;
      put(entry, a.at(i, k));
      put(entry, u + i * kLanes);
    }
    for (index_t i = (k + 1) * kLanes; i < n * kLanes; ++i) p[i] = 0.0;
    index_t i = k + 1;
    for (; i + kRows <= n; i += kRows) update_rows<kRows>(a, i, k + 1, v, w, u, p);
    for (; i < n; ++i) update_rows<1>(a, i, k + 1, v, w, u, p);
    V dot = V{};
    for (index_t j = k + 1; j < n; ++j) dot += get(p + j * kLanes) * get(u + j * kLanes);
    const V half = 0.5 * beta * beta * dot;
    for (index_t j = k + 1; j < n; ++j) {
      const V uj = get(u + j * kLanes);
      put(uj, v + j * kLanes);
      put(beta * get(p + j * kLanes) - half * uj, w + j * kLanes);
    }
  }
  const V last =
      get(a.at(n - 1, n - 1)) - 2.0 * get(v + (n - 1) * kLanes) * get(w + (n - 1) * kLanes);
  put(last, d + (n - 1) * kLanes);
  put(V{}, e + (n - 1) * kLanes);
}

// Rows [i, i + R) of Q, whose trailing part begins at `first`: Q -= (beta u) t^T with t = u^T Q, and
// what they add to `next`, the t of the reflection before, whose vector is `before`.
template <index_t R>
EIGENFEAT_INLINE void form_rows(const Matrix& a, index_t i, index_t first, const V& beta,
                                const double* u, const double* t, const double* before,
                                double* next) {
  V bu[R], ui[R];
  for (index_t r = 0; r < R; ++r) {
    bu[r] = beta * get(u + (i + r) * kLanes);
    ui[r] = get(before + (i + r) * kLanes);
  }
  for (index_t j = first; j < a.n; ++j) {
    const V tj = get(t + j * kLanes);
    V sum = get(next + j * kLanes);
    for (index_t r = 0; r < R; ++r) {
      double* entry = a.at(i + r, j);
      const V x = get(entry) - bu[r] * tj;
      put(x, entry);
      sum += x * ui[r];
    }
    put(sum, next + j * kLanes);
  }
}

// a <- Q = H_0 H_1 ..., whose reflections lie below its diagonal, from the last one on. `u`, `t` and
// the two after them are scratch.
void form(const Matrix& a, const double* betas, double* u, double* t, double* before,
          double* next) {
  const index_t n = a.n;
  for (index_t j = 0; j < n * kLanes; ++j) u[j] = t[j] = 0.0;
  // Q begins as the identity of its last row.
  put(all(1.0), a.at(n - 1, n - 1));
  put(all(1.0), u + (n - 1) * kLanes);
  put(all(1.0), t + (n - 1) * kLanes);
  for (index_t k = n - 2; k >= 0; --k) {
    // u, t: of reflection k; before, next: of reflection k - 1, which has row k as well
    for (index_t i = k; i < n; ++i) {
      put(k > 0 ? get(a.at(i, k - 1)) : V{}, before + i * kLanes);
      put(V{}, next + i * kLanes);
    }
    const V beta = get(betas + k * kLanes);
    index_t i = k + 1;
    for (; i + kRows <= n; i += kRows) form_rows<kRows>(a, i, k + 1, beta, u, t, before, next);
    for (; i < n; ++i) form_rows<1>(a, i, k + 1, beta, u, t, before, next);
    for (i = k + 1; i < n; ++i) {
      put(V{}, a.at(i, k));
      put(V{}, a.at(k, i));
    }
    put(all(1.0), a.at(k, k));
    put(get(before + k * kLanes), next + k * kLanes);
    double* const spare = u;
    u = before;
    before = spare;
    double* const other = t;
    t = next;
    next = other;
  }
}

// Rotations of columns (i, i + 1), i = top - 1 .. low, of several sweeps, which rows of the vectors
// go through together while they are in the first cache.
struct Sweeps {
  double* numbers;  // (kHeld, 2, n, lanes): cosines and sines
  index_t n, count;
  index_t low[kHeld], top[kHeld];
  EIGENFEAT_INLINE double* cosines(index_t sweep) const { return numbers + 2 * sweep * n * kLanes; }
  EIGENFEAT_INLINE double* sines(index_t sweep) const { return cosines(sweep) + n * kLanes; }
};

template <index_t R>
EIGENFEAT_INLINE void rotate_rows(const Matrix& a, index_t row, const Sweeps& sweeps) {
  for (index_t k = 0; k < sweeps.count; ++k) {
    const double *cosines = sweeps.cosines(k), *sines = sweeps.sines(k);
    V carried[R];
    for (index_t r = 0; r < R; ++r) carried[r] = get(a.at(row + r, sweeps.top[k]));
    for (index_t i = sweeps.top[k] - 1; i >= sweeps.low[k]; --i) {
      const V c = get(cosines + i * kLanes), s = get(sines + i * kLanes);
      for (index_t r = 0; r < R; ++r) {
        const V x = get(a.at(row + r, i));
        put(s * x + c * carried[r], a.at(row + r, i + 1));
        carried[r] = c * x - s * carried[r];
      }
    }
    for (index_t r = 0; r < R; ++r) put(carried[r], a.at(row + r, sweeps.low[k]));
  }
}

void rotate(const Matrix& a, Sweeps& sweeps) {
  index_t row = 0;
  for (; row + kWalk <= a.n; row += kWalk) rotate_rows<kWalk>(a, row, sweeps);
  for (; row < a.n; ++row) rotate_rows<1>(a, row, sweeps);
  sweeps.count = 0;
}

// QL with implicit shifts (Bowdler, Martin, Reinsch and Wilkinson 1968; EISPACK's tql2). Each lane
// works on a block [low, end] of its own, the first whose entries beside the diagonal are not small;
// a sweep goes over all of these, and lanes rotate by 0 outside of theirs.
unsigned iterate(const Matrix& a, double* d, double* e, double* rotations) {
  const index_t n = a.n;
  Sweeps sweeps;
  sweeps.numbers = rotations;
  sweeps.n = n;
  sweeps.count = 0;
  Mask low = Mask{}, busy = Mask{};
  index_t bottom = 0;
  for (index_t sweep = 0; sweep <= kMostSweeps * n; ++sweep) {
    Mask open = Mask{} == Mask{}, end = Mask{} + (n - 1);
    V first = V{}, beside = all(1.0), second = V{}, last = get(d + (n - 1) * kLanes);
    for (index_t m = bottom; m + 1 < n; ++m) {
      const V dm = get(d + m * kLanes), em = get(e + m * kLanes);
      const V after = get(d + (m + 1) * kLanes);
      const Mask small = magnitudes(em) <= kUnit * (magnitudes(dm) + magnitudes(after)) + kSmallest;
      const Mask begins = low == m;
      const Mask starts = begins & ~small, ends = small & open & (low < m);
      low = (begins & small) ? low + 1 : low;
      first = choose(starts, dm, first);
      beside = choose(starts, em, beside);
      second = choose(starts, after, second);
      last = choose(ends, dm, last);
      end = ends ? Mask{} + m : end;
      open &= ~ends;
      if (!any(open)) break;
    }
    busy = low < n - 1;
    if (!any(busy)) break;
    if (sweep == kMostSweeps * n) break;
    index_t top = 0;
    bottom = n;
    for (index_t k = 0; k < kLanes; ++k) {
      if (busy[k] && end[k] > top) top = end[k];
      if (busy[k] && low[k] < bottom) bottom = low[k];
    }
    V g = (second - first) / (2.0 * beside);
    V r = roots(g * g + 1.0);
    g = last - first + beside / (g + (g < V{} ? -r : r));
    V s = all(1.0), c = all(1.0), p = V{};
    Mask broken = Mask{};
    double *cosines = sweeps.cosines(sweeps.count), *sines = sweeps.sines(sweeps.count);
    for (index_t i = top - 1; i >= bottom; --i) {
      const Mask active = busy & (end > i) & (low <= i) & ~broken;
      const V di = get(d + i * kLanes), ei = get(e + i * kLanes);
      const V above = get(d + (i + 1) * kLanes), f = s * ei, b = c * ei;
      r = roots(f * f + g * g);
      const Mask none = active & (r == V{}), turns = active & ~none, ready = turns & (low == i);
      const V one = choose(turns, r, all(1.0));
      const V sine = choose(turns, f / one, V{}), cosine = choose(turns, g / one, all(1.0));
      put(choose(active, choose(end == i + 1, V{}, r), get(e + (i + 1) * kLanes)),
          e + (i + 1) * kLanes);
      const V shifted = above - p;
      const V step = (di - shifted) * sine + 2.0 * cosine * b;
      const V moved = sine * step;
      put(choose(turns, shifted + moved, choose(none, shifted, above)), d + (i + 1) * kLanes);
      p = choose(turns, moved, p);
      g = choose(turns, cosine * step - b, g);
      s = choose(turns, sine, s);
      c = choose(turns, cosine, c);
      put(choose(ready, di - p, di), d + i * kLanes);
      put(choose(ready, g, ei), e + i * kLanes);
      broken |= none;
      put(sine, sines + i * kLanes);
      put(cosine, cosines + i * kLanes);
    }
    sweeps.low[sweeps.count] = bottom;
    sweeps.top[sweeps.count] = top;
    if (++sweeps.count == kHeld) rotate(a, sweeps);
  }
  rotate(a, sweeps);
  unsigned bits = 0;
  for (index_t l = 0; l < kLanes; ++l) bits |= busy[l] ? 1u << l : 0u;
  return bits;
}

}  // namespace

unsigned decompose(double* a, index_t n, double* values, double* work) {
  const Matrix matrix{a, n, stride_of(n)};
  const index_t line = n * kLanes;
  double *e = work, *betas = e + line, *v = betas + line, *w = v + line, *u = w + line;
  double* p = u + line;
  reduce(matrix, values, e, betas, v, w, u, p);
  form(matrix, betas, v, w, u, p);
  return iterate(matrix, values, e, v);
}

// Blocks of kSide x kSide entries stay in registers.
template <index_t R, index_t S>
EIGENFEAT_INLINE void compose_block(const double* x, const double* y, index_t n, index_t i,
                                    index_t j, double* out) {
  const index_t stride = stride_of(n);
  V sum[R][S] = {};
  for (index_t k = 0; k < n; ++k) {
    V right[S];
    for (index_t s = 0; s < S; ++s) right[s] = get(y + ((j + s) * stride + k) * kLanes);
    for (index_t r = 0; r < R; ++r) {
      const V left = get(x + ((i + r) * stride + k) * kLanes);
      for (index_t s = 0; s < S; ++s) sum[r][s] += left * right[s];
    }
  }
  for (index_t r = 0; r < R; ++r) {
    for (index_t s = 0; s < S; ++s) put(sum[r][s], out + ((i + r) * stride + j + s) * kLanes);
  }
}

void compose(const double* vectors, const double* weights, index_t n, double* scaled, double* out) {
  for (index_t i = 0; i < n; ++i) {
    for (index_t k = 0; k < n; ++k) {
      const index_t at = (i * stride_of(n) + k) * kLanes;
      put(get(vectors + at) * get(weights + k * kLanes), scaled + at);
    }
  }
  const index_t whole = n - n % kSide;
  for (index_t i = 0; i < whole; i += kSide) {
    index_t j = i;
    for (; j < whole; j += kSide) compose_block<kSide, kSide>(scaled, vectors, n, i, j, out);
    for (; j < n; ++j) compose_block<kSide, 1>(scaled, vectors, n, i, j, out);
  }
  for (index_t i = whole; i < n; ++i) {
    for (index_t j = i; j < n; ++j) compose_block<1, 1>(scaled, vectors, n, i, j, out);
  }
}

template <index_t R, index_t S>
EIGENFEAT_INLINE void multiply_block(const double* a, index_t m, const double* w, index_t columns,
                                     index_t i, index_t j, double* out) {
  const index_t from = stride_of(m), to = stride_of(columns);
  V sum[R][S] = {};
  for (index_t k = 0; k < m; ++k) {
    for (index_t r = 0; r < R; ++r) {
      const V left = get(a + ((i + r) * from + k) * kLanes);
      for (index_t s = 0; s < S; ++s) sum[r][s] += left * w[k * columns + j + s];
    }
  }
  for (index_t r = 0; r < R; ++r) {
    for (index_t s = 0; s < S; ++s) put(sum[r][s], out + ((i + r) * to + j + s) * kLanes);
  }
}

void multiply(const double* a, index_t n, index_t m, const double* w, index_t columns,
              double* out) {
  const index_t rows = n - n % kSide, whole = columns - columns % kSide;
  for (index_t i = 0; i < rows; i += kSide) {
    for (index_t j = 0; j < whole; j += kSide)
      multiply_block<kSide, kSide>(a, m, w, columns, i, j, out);
    for (index_t j = whole; j < columns; ++j) multiply_block<kSide, 1>(a, m, w, columns, i, j, out);
  }
  for (index_t i = rows; i < n; ++i) {
    for (index_t j = 0; j < columns; ++j) multiply_block<1, 1>(a, m, w, columns, i, j, out);
  }
}

template <index_t R, index_t S>
EIGENFEAT_INLINE void project_block(const double* a, index_t m, const double* w, index_t n,
                                    index_t i, index_t j, double* out) {
  const index_t stride = stride_of(n);
  V sum[R][S] = {};
  for (index_t k = 0; k < m; ++k) {
    for (index_t r = 0; r < R; ++r) {
      const V left = get(a + (k * stride + i + r) * kLanes);
      for (index_t s = 0; s < S; ++s) sum[r][s] += left * w[k * n + j + s];
    }
  }
  for (index_t r = 0; r < R; ++r) {
    for (index_t s = 0; s < S; ++s) put(sum[r][s], out + ((i + r) * stride + j + s) * kLanes);
  }
}

void project(const double* a, index_t m, const double* w, index_t n, double* out) {
  const index_t whole = n - n % kSide;
  for (index_t i = 0; i < whole; i += kSide) {
    for (index_t j = 0; j <= i; j += kSide) project_block<kSide, kSide>(a, m, w, n, i, j, out);
  }
  for (index_t i = whole; i < n; ++i) {
    for (index_t j = 0; j <= i; ++j) project_block<1, 1>(a, m, w, n, i, j, out);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(LaneEigenKernels) = {EIGENFEAT_TIER::kLanes, EIGENFEAT_TIER::multiply,
                                             EIGENFEAT_TIER::project, EIGENFEAT_TIER::decompose,
                                             EIGENFEAT_TIER::compose};

}  // namespace eigenfeat
