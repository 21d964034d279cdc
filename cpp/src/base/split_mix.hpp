// Private to the core: the mixing function of SplitMix64 (Steele, Lea and Flood 2014), which maps
// counters and states to random bits.
#pragma once

#include <cstdint>

namespace eigenfeat {

inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15ULL;  // odd, near 2^64 / phi

inline std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace eigenfeat
