// Private to the core: kernels for AVX-512 alone, which live from its masks and registers.
//
// EIGENFEAT_WIDE compiles a function for it, where the compiler can; call it only if has_wide().
// Without it the macro is not defined.
#pragma once

#include "kernels/simd.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#define EIGENFEAT_WIDE __attribute__((target("arch=x86-64-v4")))
#endif

namespace eigenfeat {

inline bool has_wide() {
#ifdef EIGENFEAT_WIDE
  return __builtin_cpu_supports("x86-64-v4") != 0;
#else
  return false;
#endif
}

}  // namespace eigenfeat
