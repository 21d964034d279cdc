// Private to the core: families of kernels, and access to the kernels of the tier in use.
//
// A family is a struct of pointers to functions. A file of this folder defines the functions in the
// namespace of its tier and the family's table, once for each tier (see simd.hpp):
//
//   struct SumKernels { double (*dot)(const double* a, const double* b, index_t n); };
//   EIGENFEAT_FAMILY(SumKernels);                                          in the header
//   EIGENFEAT_DEFINE_FAMILY(SumKernels) = [] {                             at the file's end,
//     SumKernels table{};                                                  member by member
//     table.dot = EIGENFEAT_TIER::dot;
//     return table;
//   }();
//   kernels<SumKernels>().dot(a, b, n);                                    anywhere in the core
//
// Headers of families contain declarations only. A function with a body would be compiled for every
// tier, and the linker might keep a copy that the processor cannot run.
#pragma once

#include "eigenfeat/tier_kind.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class Family>
struct Compiled {
  static const Family baseline, v3, v4;
};

#define EIGENFEAT_FAMILY(...)                        \
  template <>                                        \
  const __VA_ARGS__ Compiled<__VA_ARGS__>::baseline; \
  template <>                                        \
  const __VA_ARGS__ Compiled<__VA_ARGS__>::v3;       \
  template <>                                        \
  const __VA_ARGS__ Compiled<__VA_ARGS__>::v4

extern Tier active_tier;

// The table of the tier in use.
template <class Family>
const Family& kernels() {
#ifdef EIGENFEAT_TIERS
  if (active_tier == Tier::v4) return Compiled<Family>::v4;
  if (active_tier == Tier::v3) return Compiled<Family>::v3;
#endif
  return Compiled<Family>::baseline;
}

}  // namespace eigenfeat
