// Private to the core: one cache line of numbers, which is also one AVX-512 register.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Numbers of T in a line.
template <class T>
inline constexpr index_t kLane = static_cast<index_t>(64 / sizeof(T));

// One cache line of T; the compiler lowers it to what the machine has.
template <class T>
struct Line;
template <>
struct Line<double> {
  typedef double type __attribute__((vector_size(64)));
};
template <>
struct Line<float> {
  typedef float type __attribute__((vector_size(64)));
};

}  // namespace eigenfeat
