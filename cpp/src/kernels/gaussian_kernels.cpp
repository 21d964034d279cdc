#include "kernels/gaussian_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kLanes = GaussianParts::kLanes;

// Scales a positive product to [1, 2), and adds its exponent to the sum of exponents. Exponents are
// unsigned, because AVX2 has no arithmetic shift of 64 bits.
EIGENFEAT_INLINE void normalise(double* __restrict product, std::int64_t* __restrict exponents) {
  for (index_t l = 0; l < kLanes; ++l) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, product + l, sizeof bits);
    exponents[l] += static_cast<std::int64_t>(bits >> 52) - 1023;
    bits = (bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000;
    __builtin_memcpy(product + l, &bits, sizeof bits);
  }
}

// kPiece columns, of which `width` exist; their sums stay in registers during the loop over rows.
template <class T, index_t kPiece>
struct Piece {
  T origin[kPiece] = {};
  T first[kPiece] = {};
  T second[kPiece] = {};

  EIGENFEAT_INLINE void add(const T* row, index_t width) {
    for (index_t l = 0; l < width; ++l) {
      const T gap = row[l] - origin[l];
      first[l] += gap;
      second[l] += gap * gap;
    }
  }
  EIGENFEAT_INLINE T variance_of(index_t l, T share, T ridge) const {
    const T mean = first[l] * share;
    const T spread = second[l] * share - mean * mean;
    return (spread > T(0) ? spread : T(0)) + ridge;
  }
  EIGENFEAT_INLINE void evaluate(const T* x, index_t width, index_t count, T ridge,
                                 double& quadratic, double* __restrict product,
                                 std::int64_t* __restrict exponents) const {
    const T share = T(1) / static_cast<T>(count);
    T variance[kPiece], term[kPiece];
    for (index_t l = 0; l < width; ++l) {
      const T mean = first[l] * share;
      variance[l] = variance_of(l, share, ridge);
      const T gap = (x[l] - origin[l]) - mean;
      term[l] = gap * gap / variance[l];
    }
    double lanes[kLanes] = {};
    for (index_t begin = 0; begin < width; begin += kLanes) {
      const index_t n = least(kLanes, width - begin);
      for (index_t l = 0; l < n; ++l) {
        product[l] *= static_cast<double>(variance[begin + l]);
        lanes[l] += static_cast<double>(term[begin + l]);
      }
    }
    normalise(product, exponents);
    for (index_t l = 0; l < kLanes; ++l) quadratic += lanes[l];
  }
};

// Like Piece, for a piece whose columns all exist, in vectors.
constexpr index_t kVectors = 4;

template <class T>
struct WholePiece {
  static constexpr index_t kPiece = kVectors * kWidth<T>;
  Vec<T> origin[kVectors], first[kVectors] = {}, second[kVectors] = {};

  EIGENFEAT_INLINE explicit WholePiece(const T* row) {
    for (index_t v = 0; v < kVectors; ++v) origin[v] = load(row + v * kWidth<T>);
  }
  EIGENFEAT_INLINE void add(const T* row) {
    for (index_t v = 0; v < kVectors; ++v) {
      const Vec<T> gap = load(row + v * kWidth<T>) - origin[v];
      first[v] += gap;
      second[v] += gap * gap;
    }
  }
  EIGENFEAT_INLINE void evaluate(const T* x, index_t count, T ridge, double& quadratic,
                                 double* product, std::int64_t* exponents) const {
    if constexpr (sizeof(T) == sizeof(double)) {
      evaluate_in_vectors(x, count, ridge, quadratic, product, exponents);
    } else {
      sums().evaluate(x, kPiece, count, ridge, quadratic, product, exponents);
    }
  }

 private:
  EIGENFEAT_INLINE void evaluate_in_vectors(const double* x, index_t count, double ridge,
                                            double& quadratic, double* product,
                                            std::int64_t* exponents) const {
    typedef std::uint64_t Bits __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
    constexpr index_t width = kWidth<double>;
    const double share = 1.0 / static_cast<double>(count);
    Vec<double> terms = {};
    for (index_t v = 0; v < kVectors; ++v) {
      const Vec<double> mean = first[v] * share;
      const Vec<double> spread = second[v] * share - mean * mean;
      const Vec<double> variance = (spread > 0.0 ? spread : Vec<double>{}) + ridge;
      const Vec<double> gap = (load(x + v * width) - origin[v]) - mean;
      terms += gap * gap / variance;
      const index_t lane = v * width % kLanes;
      const Vec<double> grown = load(product + lane) * variance;
      Bits bits, exponent;
      __builtin_memcpy(&bits, &grown, sizeof bits);
      __builtin_memcpy(&exponent, exponents + lane, sizeof exponent);
      exponent += (bits >> 52) - 1023;
      bits = (bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000;
      __builtin_memcpy(product + lane, &bits, sizeof bits);
      __builtin_memcpy(exponents + lane, &exponent, sizeof exponent);
    }
    for (index_t l = 0; l < width; ++l) quadratic += terms[l];
  }
  EIGENFEAT_INLINE Piece<T, kPiece> sums() const {
    Piece<T, kPiece> piece;
    __builtin_memcpy(piece.origin, origin, sizeof origin);
    __builtin_memcpy(piece.first, first, sizeof first);
    __builtin_memcpy(piece.second, second, sizeof second);
    return piece;
  }
};

template <class T>
EIGENFEAT_INLINE void add_whole_piece(const T* x, const T* const* rows, index_t n_rows, index_t j,
                                      const index_t* counts, index_t n_counts, T ridge,
                                      const GaussianParts& sums) {
  WholePiece<T> piece(rows[0] + j);
  index_t r = 1;
  for (index_t next = 0; next < n_counts && counts[next] <= n_rows; ++next) {
    for (; r < counts[next]; ++r) piece.add(rows[r] + j);
    piece.evaluate(x + j, r, ridge, sums.quadratic[next], sums.product + next * kLanes,
                   sums.exponents + next * kLanes);
  }
}

template <class T, index_t kPiece>
EIGENFEAT_INLINE void add_piece(const T* x, const T* const* rows, index_t n_rows, index_t j,
                                index_t width, const index_t* counts, index_t n_counts, T ridge,
                                const GaussianParts& sums) {
  Piece<T, kPiece> piece;
  for (index_t l = 0; l < width; ++l) piece.origin[l] = rows[0][j + l];
  index_t next = 0;
  for (index_t r = 0; r < n_rows && next < n_counts; ++r) {
    if (r > 0) piece.add(rows[r] + j, width);
    if (r + 1 != counts[next]) continue;
    piece.evaluate(x + j, width, r + 1, ridge, sums.quadratic[next], sums.product + next * kLanes,
                   sums.exponents + next * kLanes);
    ++next;
  }
}

template <class T>
void add_gaussians(const T* x, const T* const* rows, index_t n_rows, index_t first, index_t last,
                   const index_t* counts, index_t n_counts, T ridge, const GaussianParts& sums) {
  constexpr index_t piece = WholePiece<T>::kPiece;
  index_t j = first;
  for (; j + piece <= last; j += piece)
    add_whole_piece<T>(x, rows, n_rows, j, counts, n_counts, ridge, sums);
  if (j < last) add_piece<T, piece>(x, rows, n_rows, j, last - j, counts, n_counts, ridge, sums);
}

template <class T>
void gaussian_of(const T* const* rows, index_t n_rows, index_t d, T ridge, double* mean,
                 double* variance) {
  constexpr index_t kPiece = 128 / static_cast<index_t>(sizeof(T));  // columns of two cache lines
  const T share = T(1) / static_cast<T>(n_rows);
  for (index_t j = 0; j < d; j += kPiece) {
    const index_t width = least(kPiece, d - j);
    Piece<T, kPiece> piece;
    for (index_t l = 0; l < width; ++l) piece.origin[l] = rows[0][j + l];
    for (index_t r = 1; r < n_rows; ++r) piece.add(rows[r] + j, width);
    for (index_t l = 0; l < width; ++l) {
      mean[j + l] = static_cast<double>(piece.origin[l]) +
                    static_cast<double>(piece.first[l]) * static_cast<double>(share);
      variance[j + l] = static_cast<double>(piece.variance_of(l, share, ridge));
    }
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(GaussianKernels<float>) = [] {
  GaussianKernels<float> table{};
  table.add = EIGENFEAT_TIER::add_gaussians<float>;
  table.of_rows = EIGENFEAT_TIER::gaussian_of<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(GaussianKernels<double>) = [] {
  GaussianKernels<double> table{};
  table.add = EIGENFEAT_TIER::add_gaussians<double>;
  table.of_rows = EIGENFEAT_TIER::gaussian_of<double>;
  return table;
}();

}  // namespace eigenfeat
