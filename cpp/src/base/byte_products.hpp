// Private to the core: products of strips of bytes (see kernels/byte_kernels.hpp) by AVX-512 with
// VNNI, which adds four products in one instruction.
#pragma once

#include <cstdint>

#include "eigenfeat/view.hpp"
#include "kernels/byte_kernels.hpp"

namespace eigenfeat {

// Whether this processor has the instruction, and the tier in use allows it. Otherwise
// multiply_four does nothing.
bool has_four_products();

// sums (kStrip, kStrip) row-major += left^T (right - kSigned) of strips with `entries` entries of
// four bytes in each column. kSigned is subtracted because one factor of the instruction is signed.
void multiply_four(const std::uint32_t* left, const std::uint32_t* right, index_t entries,
                   std::int32_t* sums);

// Entries of two strips that fit into the first-level cache.
inline constexpr index_t kEntriesAtOnce = 64;

}  // namespace eigenfeat
