// Private to the eigensolvers: reproducible starting blocks.
#pragma once

#include <cstdint>

#include "base/split_mix.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Entry i of a stream, uniform in (-1, 1): a counter passed through SplitMix64. The factor of the
// stream keeps the counters of streams apart.
inline double random_entry(std::uint64_t stream, std::uint64_t i) {
  const std::uint64_t z = mixed_bits((stream * 0x2545F4914F6CDD1DULL + i + 1) * kGoldenGamma);
  return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
}

template <class T>
void fill_random(T* out, index_t n, std::uint64_t stream) {
  for (index_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(random_entry(stream, static_cast<std::uint64_t>(i)));
}

}  // namespace eigenfeat
