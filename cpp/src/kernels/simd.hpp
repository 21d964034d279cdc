// Private to the files of this folder: vectors of the tier for which a file is compiled.
//
// Vec<T> is a vector type of the compiler (GCC, clang) with the width of a register; compilers
// implement wider vectors entry by entry, on the stack. The layout of packed data does not depend
// on the tier: it consists of lines of 64 bytes, which are 1, 2 or 4 vectors.
//
// Files of this folder use compiler builtins, but no inline function from outside, including the
// standard library: the linker might keep the copy that was compiled for a wider tier.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/family.hpp"
#include "kernels/line.hpp"

// Sizes of arrays are template parameters of a signed type. Vectors are passed between inlined
// functions only, so that their ABI does not matter.
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#ifndef EIGENFEAT_TIER
#define EIGENFEAT_TIER baseline
#endif

// Tables are constants, because initialisation code would be compiled for the tier and run when the
// library is loaded.
#if defined(__clang__)
#define EIGENFEAT_CONSTANT [[clang::require_constant_initialization]]
#elif defined(__GNUC__) && __GNUC__ >= 10
#define EIGENFEAT_CONSTANT __constinit
#else
#define EIGENFEAT_CONSTANT
#endif

#define EIGENFEAT_DEFINE_FAMILY(...) \
  template <>                        \
  EIGENFEAT_CONSTANT const __VA_ARGS__ Compiled<__VA_ARGS__>::EIGENFEAT_TIER

#if defined(__GNUC__)
#define EIGENFEAT_INLINE inline __attribute__((always_inline))
#define EIGENFEAT_OUT_OF_LINE __attribute__((noinline))
#define EIGENFEAT_PREFETCH(address) __builtin_prefetch(address)
#else
#define EIGENFEAT_INLINE inline
#define EIGENFEAT_OUT_OF_LINE
#define EIGENFEAT_PREFETCH(address)
#endif

namespace eigenfeat::EIGENFEAT_TIER {

// Size and number of the vector registers.
#if defined(__AVX512F__)
#define EIGENFEAT_VECTOR_BYTES 64
inline constexpr index_t kRegisters = 32;
#elif defined(__AVX2__)
#define EIGENFEAT_VECTOR_BYTES 32
inline constexpr index_t kRegisters = 16;
#elif defined(__aarch64__)
#define EIGENFEAT_VECTOR_BYTES 16
inline constexpr index_t kRegisters = 32;
#else
#define EIGENFEAT_VECTOR_BYTES 16
inline constexpr index_t kRegisters = 16;
#endif

// Whether one instruction computes a product and a sum; otherwise a product takes a register.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

// Maximum number of vectors of a panel for which the sums of several rows stay in registers.
inline constexpr index_t kMaxVectors = kRegisters == 32 ? 4 : 3;

template <index_t kCount>
struct Count {
  static constexpr index_t value = kCount;
};

// Calls work(Count<count>{}) for 1 <= count <= kMax, which turns a runtime number into a constant.
template <index_t kMax, class Work>
EIGENFEAT_INLINE void with_count(index_t count, Work&& work) {
  if constexpr (kMax > 1) {
    if (count < kMax) return with_count<kMax - 1>(count, work);
  }
  work(Count<kMax>{});
}

template <class T>
struct Register;
template <>
struct Register<double> {
  typedef double type __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
  typedef std::int64_t integers __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
};
template <>
struct Register<float> {
  typedef float type __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
  typedef std::int32_t integers __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
};
template <class T>
using Vec = typename Register<T>::type;

// Numbers in a vector, and vectors in a line.
template <class T>
inline constexpr index_t kWidth = static_cast<index_t>(EIGENFEAT_VECTOR_BYTES / sizeof(T));
inline constexpr index_t kPerLine = 64 / EIGENFEAT_VECTOR_BYTES;

// Loads and stores at any address.
template <class T>
EIGENFEAT_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
EIGENFEAT_INLINE void store(const Vec<T>& v, T* to) {
  __builtin_memcpy(to, &v, sizeof v);
}

// a b + c, rounded once if the tier has such an instruction. Compilers may or may not fuse products
// and sums; GCC from version 13 does not in scalar sums across iterations. Kernels whose results
// must not depend on the number of columns that are processed together call this function.
EIGENFEAT_INLINE float product_sum(float a, float b, float c) {
  return kFused ? __builtin_fmaf(a, b, c) : a * b + c;
}
EIGENFEAT_INLINE double product_sum(double a, double b, double c) {
  return kFused ? __builtin_fma(a, b, c) : a * b + c;
}

template <class T>
EIGENFEAT_INLINE T least(T a, T b) {
  return b < a ? b : a;
}

// Size of the next part of `left` items that are divided into nearly equal parts of limited size.
EIGENFEAT_INLINE index_t even_part(index_t left, index_t most) {
  const index_t parts = (left + most - 1) / most;
  return (left + parts - 1) / parts;
}

EIGENFEAT_INLINE float square_root(float x) {
  return __builtin_sqrtf(x);
}
EIGENFEAT_INLINE double square_root(double x) {
  return __builtin_sqrt(x);
}

EIGENFEAT_INLINE float magnitude(float x) {
  return __builtin_fabsf(x);
}
EIGENFEAT_INLINE double magnitude(double x) {
  return __builtin_fabs(x);
}

// The sum of the eight numbers of a line, in a fixed order.
EIGENFEAT_INLINE double sum_of_line(const double* x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

}  // namespace eigenfeat::EIGENFEAT_TIER
