// Private to the core: how a hot loop gets wider instructions on machines that have them.
//
// EIGENFEAT_CLONES compiles a function for AVX-512, AVX2 and the portable baseline, and the loader
// picks one for the machine at hand. Sanitizer builds turn it off: resolvers run before their
// runtime is up.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && __GNUC__ >= 12 && \
    !defined(__clang__) && !defined(EIGENFEAT_NO_TARGET_CLONES)
#define EIGENFEAT_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EIGENFEAT_CLONES
#endif

#if defined(__GNUC__)
#define EIGENFEAT_INLINE inline __attribute__((always_inline))
#define EIGENFEAT_PREFETCH(address) __builtin_prefetch(address)
#else
#define EIGENFEAT_INLINE inline
#define EIGENFEAT_PREFETCH(address)
#endif
