// Private to the core: products of strips of bytes (see kernels/byte_kernels.hpp) where the machine sums
// four of them in one instruction, AVX-512 with VNNI.
#pragma once

#include <cstdint>

#include "eigenfeat/view.hpp"
#include "kernels/byte_kernels.hpp"

namespace eigenfeat {

// Whether this machine has the instruction.
bool has_four_products();

// sums (kStrip, kStrip) row-major += left^T (right - kSigned) of strips of four bytes an entry, `entries` of
// them a column: one factor of the instruction is signed.
void multiply_four(const std::uint32_t* left, const std::uint32_t* right, index_t entries,
                   std::int32_t* sums);

inline constexpr index_t kEntriesAtOnce = 64;  // of two strips, in the first-level cache

}  // namespace eigenfeat
