#include "kernels/lane_log_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {
namespace {

constexpr index_t kRows = kRegisters >= 32 ? 4 : 2;  // rows of a block in the reduction
constexpr index_t kPair = kRegisters >= 32 ? 2 : 1;  // rows of a block that two reflections change
constexpr index_t kSide = kRegisters >= 32 ? 4 : 3;  // rows and columns of a block of a product
constexpr index_t kNodes = kLogNodes;                // nodes of a group that is computed together
constexpr index_t kColumns = 4;                      // columns of a block of inverses
constexpr index_t kCheck = 4;                        // entries of a column between two checks
constexpr int kHalvings = 14;  // bisections of the brackets of extreme eigenvalues

// Kernels with one matrix in each lane.
struct LaneLogs {
  using V = Vec<double>;
  using Mask = Register<double>::integers;

  static constexpr index_t kLanes = kWidth<double>;
  // Flush smaller squares, and parts of an entry below kNegligible, to zero to avoid denormals.
  static constexpr double kSmallest = 2.2250738585072014e-308;
  static constexpr double kNegligible = 1e-100;

  static EIGENFEAT_INLINE V get(const double* from) { return load(from); }
  static EIGENFEAT_INLINE void put(const V& v, double* to) { store<double>(v, to); }
  static EIGENFEAT_INLINE V all(double x) { return V{} + x; }
  static EIGENFEAT_INLINE V choose(const Mask& mask, const V& yes, const V& no) {
    return mask ? yes : no;
  }
  static EIGENFEAT_INLINE V roots(const V& v) {
    V out = v;
    for (index_t l = 0; l < kLanes; ++l) out[l] = square_root(v[l]);
    return out;
  }
  static EIGENFEAT_INLINE V magnitudes(const V& v) { return v < V{} ? -v : v; }
  static EIGENFEAT_INLINE bool any(const Mask& mask) {
    std::int64_t found = 0;
    for (index_t l = 0; l < kLanes; ++l) found |= mask[l];
    return found != 0;
  }

  // A matrix row by row; each entry has kLanes numbers.
  struct Matrix {
    double* data;
    index_t stride;
    EIGENFEAT_INLINE double* at(index_t i, index_t j) const {
      return data + (i * stride + j) * kLanes;
    }
  };

  // The stride of rows is an odd number of vectors; with an even number, the entries of a column
  // would share few sets of the cache.
  static EIGENFEAT_INLINE index_t stride_of(index_t n) { return n | 1; }

  // Rows [i, i + R) of the trailing matrix from column `first` on, below and on the diagonal:
  // applies the update A -= v w^T + w v^T of the previous step, and adds the updated entries to the
  // products p = A u of this step.
  template <index_t R>
  static EIGENFEAT_INLINE void update_rows(const Matrix& a, index_t i, index_t first,
                                           const double* v, const double* w, const double* u,
                                           double* p) {
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

  // A = Q T Q^T by Householder reflections H = I - beta u u^T from the first column on. u is stored
  // below the diagonal of its column, beta in `betas`. The pass of a step applies the update of the
  // previous step.
  static void reduce(double* matrix, index_t n, double* d, double* e, double* betas, double* work) {
    const Matrix a{matrix, stride_of(n)};
    double *v = work, *w = v + n * kLanes, *u = w + n * kLanes, *p = u + n * kLanes;
    for (index_t i = 0; i < n * kLanes; ++i) v[i] = w[i] = 0.0;
    for (index_t k = 0; k + 1 < n; ++k) {
      // column k after the update of the previous step
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
      const V inverse = choose(reflects, 1.0 / choose(reflects, head, all(1)), V{});
      const V beta = choose(reflects, -head / choose(reflects, alpha, all(1)), V{});
      put(choose(reflects, alpha, x), e + k * kLanes);
      put(beta, betas + k * kLanes);
      put(all(1), u + (k + 1) * kLanes);
      put(all(1), a.at(k + 1, k));
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

  // Two reflections H = I - beta u u^T; each changes a symmetric matrix by A -= u w^T + w u^T.
  struct Reflections {
    double *u[2], *w[2];
  };

  // Rows [i, i + R) of a matrix, and the entries of the vectors of two reflections in these rows.
  template <index_t R>
  struct Rows {
    V v[R][2], w[R][2], u[R][2], sum[R][2];
  };

  // Columns [begin, end) of these rows: applies the updates of the reflections `last`, and adds the
  // updated entries to the products p = A u of both reflections `next`. Before the first entry of
  // u, only w is used.
  template <index_t R, bool inside>
  static EIGENFEAT_INLINE void rotate_columns(const Matrix& a, index_t i, Rows<R>& rows,
                                              index_t begin, index_t end, const Reflections& last,
                                              const Reflections& next) {
    for (index_t j = begin; j < end; ++j) {
      V wj[2], vj[2], uj[2], below[2];
      for (index_t b = 0; b < 2; ++b) {
        wj[b] = get(last.w[b] + j * kLanes);
        vj[b] = inside ? get(last.u[b] + j * kLanes) : V{};
        uj[b] = inside ? get(next.u[b] + j * kLanes) : V{};
        below[b] = get(next.w[b] + j * kLanes);
      }
      for (index_t r = 0; r < R; ++r) {
        double* entry = a.at(i + r, j);
        V x = get(entry) - rows.v[r][0] * wj[0] - rows.v[r][1] * wj[1];
        if (inside) x = x - rows.w[r][0] * vj[0] - rows.w[r][1] * vj[1];
        put(x, entry);
        for (index_t b = 0; b < 2; ++b) {
          if (inside) rows.sum[r][b] += x * uj[b];
          below[b] += x * rows.u[r][b];
        }
      }
      for (index_t b = 0; b < 2; ++b) put(below[b], next.w[b] + j * kLanes);
    }
  }

  // Rows [i, i + R), below and on the diagonal.
  template <index_t R>
  static EIGENFEAT_INLINE void rotate_rows(const Matrix& a, index_t i, index_t first,
                                           const Reflections& last, const Reflections& next) {
    Rows<R> rows;
    for (index_t r = 0; r < R; ++r) {
      for (index_t b = 0; b < 2; ++b) {
        rows.v[r][b] = get(last.u[b] + (i + r) * kLanes);
        rows.w[r][b] = get(last.w[b] + (i + r) * kLanes);
        rows.u[r][b] = get(next.u[b] + (i + r) * kLanes);
        rows.sum[r][b] = V{};
      }
    }
    rotate_columns<R, false>(a, i, rows, 0, first, last, next);
    rotate_columns<R, true>(a, i, rows, first, i, last, next);
    for (index_t r = 0; r < R; ++r) {
      for (index_t s = 0; s <= r; ++s) {
        double* entry = a.at(i + r, i + s);
        V x = get(entry);
        for (index_t b = 0; b < 2; ++b)
          x = x - rows.v[r][b] * rows.w[s][b] - rows.w[r][b] * rows.v[s][b];
        put(x, entry);
        for (index_t b = 0; b < 2; ++b) {
          rows.sum[r][b] += x * rows.u[s][b];
          if (s < r) rows.sum[s][b] += x * rows.u[r][b];
        }
      }
    }
    for (index_t r = 0; r < R; ++r) {
      for (index_t b = 0; b < 2; ++b) {
        double* product = next.w[b] + (i + r) * kLanes;
        put(get(product) + rows.sum[r][b], product);
      }
    }
  }

  static EIGENFEAT_INLINE V dot(const double* x, const double* y, index_t n) {
    V sum = V{};
    for (index_t i = 0; i < n; ++i) sum += get(x + i * kLanes) * get(y + i * kLanes);
    return sum;
  }

  // w <- beta w - (beta^2 / 2) (u^T w) u, of products w = A u
  static void finish(const double* u, const V& beta, double* w, index_t n) {
    const V half = 0.5 * beta * beta * dot(u, w, n);
    for (index_t i = 0; i < n; ++i)
      put(beta * get(w + i * kLanes) - half * get(u + i * kLanes), w + i * kLanes);
  }

  // out <- Q out Q^T with the reflections below the diagonal of `a`, from the last reflection on, two
  // for each pass. A pass applies the update of the previous pair; the last pass has no reflections
  // of its own.
  static void rotate(const double* a, index_t n, const double* betas, double* matrix,
                     double* work) {
    const Matrix out{matrix, stride_of(n)};
    const index_t line = n * kLanes;
    Reflections last = {{work, work + line}, {work + 2 * line, work + 3 * line}};
    Reflections next = {{work + 4 * line, work + 5 * line}, {work + 6 * line, work + 7 * line}};
    for (index_t j = 0; j < 8 * line; ++j) work[j] = 0.0;
    for (index_t k = n - 1 - (n & 1); k >= -1; k -= 2) {
      V beta[2] = {};
      for (index_t b = 0; b < 2; ++b) {
        const index_t column = k - b;
        const bool there = column >= 0 && column + 1 < n;
        if (there) beta[b] = get(betas + column * kLanes);
        for (index_t j = 0; j < n; ++j) {
          const bool below = there && j > column;
          put(below ? get(a + (j * out.stride + column) * kLanes) : V{}, next.u[b] + j * kLanes);
          put(V{}, next.w[b] + j * kLanes);
        }
      }
      const index_t first = k < 1 ? 0 : k;
      index_t i = first;
      for (; i + kPair <= n; i += kPair) rotate_rows<kPair>(out, i, first, last, next);
      for (; i < n; ++i) rotate_rows<1>(out, i, first, last, next);
      finish(next.u[0], beta[0], next.w[0], n);
      // change of the second reflection's products by the first reflection
      const V along = dot(next.w[0], next.u[1], n), across = dot(next.u[0], next.u[1], n);
      for (index_t j = 0; j < n; ++j) {
        double* product = next.w[1] + j * kLanes;
        put(get(product) - along * get(next.u[0] + j * kLanes) -
                across * get(next.w[0] + j * kLanes),
            product);
      }
      finish(next.u[1], beta[1], next.w[1], n);
      const Reflections spare = last;
      last = next;
      next = spare;
    }
  }

  // By bisection: lambda exceeds x if all pivots of T - x are positive. The smallest eigenvalue of a
  // positive definite T is between 1 / t and n / t, where t is the trace of the inverse of T.
  static void extremes(const double* d, const double* e, index_t n, double* work, double* low,
                       double* high) {
    V below = get(d), above = get(d), beside = V{};
    for (index_t i = 0; i < n; ++i) {
      const V size = magnitudes(get(e + i * kLanes)), di = get(d + i * kLanes);
      below = di > below ? di : below;
      const V reach = di + beside + size;
      above = reach > above ? reach : above;
      beside = size;
    }
    Mask positive = Mask{} == Mask{};
    V pivot = get(d);
    for (index_t i = 0; i < n; ++i) {
      positive &= pivot > V{};
      put(1.0 / pivot, work + i * kLanes);
      if (i + 1 == n) break;
      const V ei = get(e + i * kLanes);
      pivot = get(d + (i + 1) * kLanes) - ei * ei * get(work + i * kLanes);
    }
    V entry = V{}, trace = V{}, ratio = V{};
    for (index_t i = n - 1; i >= 0; --i) {
      const V inverse = get(work + i * kLanes);
      ratio = get(e + i * kLanes) * inverse;  // the last entry of e is 0
      entry = inverse + ratio * ratio * entry;
      trace += entry;
    }
    V from = choose(positive, 1.0 / trace, V{}),
      to = choose(positive, static_cast<double>(n) / trace, V{});
    for (int step = 0; step < kHalvings; ++step) {
      const V x = 0.5 * (from + to), y = 0.5 * (below + above);
      V p = get(d) - x, q = y - get(d);
      Mask smaller = p > V{}, larger = q > V{};
      for (index_t i = 1; i < n; ++i) {
        const V square = get(e + (i - 1) * kLanes) * get(e + (i - 1) * kLanes);
        const V di = get(d + i * kLanes);
        p = di - x - square / p;
        q = y - di - square / q;
        smaller &= p > V{};
        larger &= q > V{};
      }
      from = choose(smaller, x, from);
      to = choose(smaller, to, x);
      above = choose(larger, y, above);
      below = choose(larger, below, y);
    }
    put(from, low);
    put(below, high);
  }

  // Subtracts columns [q, q + R) of sum_j w_j (T + t_j)^-1, above the diagonal, from the rows of
  // `matrix`. An entry is the weighted diagonal entry of its column times the ratios of the rows
  // between; the columns share the ratios above row q.
  template <index_t R>
  static EIGENFEAT_INLINE void take_columns(const Matrix& matrix, index_t q, const double* ratios,
                                            const double* diagonal) {
    V heads[R][kNodes], way[kNodes];
    for (index_t r = 0; r < R; ++r) {
      for (index_t g = 0; g < kNodes; ++g)
        heads[r][g] = get(diagonal + ((q + r) * kNodes + g) * kLanes);
      for (index_t p = q + r - 1; p >= q; --p) {
        V entry = get(matrix.at(q + r, p));
        for (index_t g = 0; g < kNodes; ++g) {
          heads[r][g] *= get(ratios + (p * kNodes + g) * kLanes);
          entry -= heads[r][g];
        }
        put(entry, matrix.at(q + r, p));
      }
    }
    for (index_t g = 0; g < kNodes; ++g) way[g] = all(1);
    for (index_t p = q - 1; p >= 0; --p) {
      for (index_t g = 0; g < kNodes; ++g) way[g] *= get(ratios + (p * kNodes + g) * kLanes);
      for (index_t r = 0; r < R; ++r) {
        V entry = get(matrix.at(q + r, p));
        for (index_t g = 0; g < kNodes; ++g) entry -= way[g] * heads[r][g];
        put(entry, matrix.at(q + r, p));
      }
      if ((q - p) % kCheck != 0) continue;
      Mask some = Mask{};
      for (index_t g = 0; g < kNodes; ++g) {
        const Mask left = magnitudes(way[g]) > all(kNegligible);
        way[g] = choose(left, way[g], V{});
        some |= left;
      }
      if (!any(some)) break;
    }
  }

  // (T + t)^-1 = U^-1 D^-1 U^-T with T + t = U^T D U from the first entry on. Column q of the
  // inverse is computed upwards from its diagonal entry by the ratios -e_p / d_p, without
  // subtractions.
  static void logarithm(const double* d, const double* e, index_t n, const double* shifts,
                        const double* weights, const double* constants, index_t count, double* out,
                        double* work) {
    const Matrix matrix{out, stride_of(n)};
    double *ratios = work, *diagonal = work + n * kNodes * kLanes;
    for (index_t q = 0; q < n; ++q) {
      for (index_t p = 0; p <= q; ++p) put(V{}, matrix.at(q, p));
    }
    for (index_t node = 0; node < count; node += kNodes) {
      V shift[kNodes], weight[kNodes], pivot[kNodes], entry[kNodes], constant = V{};
      for (index_t g = 0; g < kNodes; ++g) {
        shift[g] = get(shifts + (node + g) * kLanes);
        weight[g] = get(weights + (node + g) * kLanes);
        constant += get(constants + (node + g) * kLanes);
        pivot[g] = get(d) + shift[g];
        entry[g] = V{};
      }
      for (index_t i = 0; i < n; ++i) {
        const V ei = get(e + i * kLanes);
        const V next = i + 1 < n ? get(d + (i + 1) * kLanes) : V{};
        for (index_t g = 0; g < kNodes; ++g) {
          const V inverse = 1.0 / pivot[g], ratio = -ei * inverse;
          put(inverse, diagonal + (i * kNodes + g) * kLanes);
          put(ratio, ratios + (i * kNodes + g) * kLanes);
          pivot[g] = next + shift[g] + ei * ratio;
        }
      }
      // diagonal entries, from the last one, whose ratio is 0
      for (index_t q = n - 1; q >= 0; --q) {
        V sum = V{};
        for (index_t g = 0; g < kNodes; ++g) {
          const index_t at = (q * kNodes + g) * kLanes;
          const V ratio = get(ratios + at);
          entry[g] = get(diagonal + at) + ratio * ratio * entry[g];
          const V weighted = weight[g] * entry[g];
          put(weighted, diagonal + at);
          sum += weighted;
        }
        put(get(matrix.at(q, q)) + (constant - sum), matrix.at(q, q));
      }
      index_t q = n;
      for (; q >= kColumns; q -= kColumns)
        take_columns<kColumns>(matrix, q - kColumns, ratios, diagonal);
      for (; q >= 1; --q) take_columns<1>(matrix, q - 1, ratios, diagonal);
    }
  }

  // Column j of w is 0 from row `ends[j]` on; the sums of a block end at the largest of its ends.
  template <index_t S>
  static EIGENFEAT_INLINE index_t end_of(const index_t* ends, index_t j) {
    index_t end = ends[j];
    for (index_t s = 1; s < S; ++s) end = ends[j + s] > end ? ends[j + s] : end;
    return end;
  }

  template <index_t R, index_t S>
  static EIGENFEAT_INLINE void multiply_block(const double* a, index_t m, const double* w,
                                              const index_t* ends, index_t columns, index_t i,
                                              index_t j, double* out) {
    const index_t from = stride_of(m), to = stride_of(columns), end = end_of<S>(ends, j);
    V sum[R][S] = {};
    for (index_t k = 0; k < end; ++k) {
      for (index_t r = 0; r < R; ++r) {
        const V left = get(a + ((i + r) * from + k) * kLanes);
        for (index_t s = 0; s < S; ++s) sum[r][s] += left * w[k * columns + j + s];
      }
    }
    for (index_t r = 0; r < R; ++r) {
      for (index_t s = 0; s < S; ++s) put(sum[r][s], out + ((i + r) * to + j + s) * kLanes);
    }
  }

  static void multiply(const double* a, index_t n, index_t m, const double* w, const index_t* ends,
                       index_t columns, double* out) {
    const index_t rows = n - n % kSide, whole = columns - columns % kSide;
    for (index_t i = 0; i < rows; i += kSide) {
      for (index_t j = 0; j < whole; j += kSide)
        multiply_block<kSide, kSide>(a, m, w, ends, columns, i, j, out);
      for (index_t j = whole; j < columns; ++j)
        multiply_block<kSide, 1>(a, m, w, ends, columns, i, j, out);
    }
    for (index_t i = rows; i < n; ++i) {
      for (index_t j = 0; j < whole; j += kSide)
        multiply_block<1, kSide>(a, m, w, ends, columns, i, j, out);
      for (index_t j = whole; j < columns; ++j)
        multiply_block<1, 1>(a, m, w, ends, columns, i, j, out);
    }
  }

  template <index_t R, index_t S>
  static EIGENFEAT_INLINE void project_block(const double* a, const double* w, const index_t* ends,
                                             index_t n, index_t i, index_t j, double* out) {
    const index_t stride = stride_of(n), end = end_of<S>(ends, j);
    V sum[R][S] = {};
    for (index_t k = 0; k < end; ++k) {
      for (index_t r = 0; r < R; ++r) {
        const V left = get(a + (k * stride + i + r) * kLanes);
        for (index_t s = 0; s < S; ++s) sum[r][s] += left * w[k * n + j + s];
      }
    }
    for (index_t r = 0; r < R; ++r) {
      for (index_t s = 0; s < S; ++s) put(sum[r][s], out + ((i + r) * stride + j + s) * kLanes);
    }
  }

  static void project(const double* a, const double* w, const index_t* ends, index_t n,
                      double* out) {
    const index_t whole = n - n % kSide;
    for (index_t i = 0; i < whole; i += kSide) {
      for (index_t j = 0; j <= i; j += kSide) project_block<kSide, kSide>(a, w, ends, n, i, j, out);
    }
    for (index_t i = whole; i < n; ++i) {
      for (index_t j = 0; j < whole; j += kSide) project_block<1, kSide>(a, w, ends, n, i, j, out);
      for (index_t j = whole; j <= i; ++j) project_block<1, 1>(a, w, ends, n, i, j, out);
    }
  }

  static constexpr LaneLogKernels table() {
    LaneLogKernels table{};
    table.lanes = kLanes;
    table.multiply = multiply;
    table.project = project;
    table.reduce = reduce;
    table.extremes = extremes;
    table.logarithm = logarithm;
    table.rotate = rotate;
    return table;
  }
};

}  // namespace
}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(LaneLogKernels) = EIGENFEAT_TIER::LaneLogs::table();

}  // namespace eigenfeat
