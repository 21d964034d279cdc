// Tiers: which instruction set the kernels use.
//
// The files of cpp/src/kernels are compiled once for each tier of the compiler, for the width and
// number of the tier's registers. The best tier of the processor is chosen when the core is loaded.
// Within a tier, results are bit-for-bit identical for any number of threads; results of different
// tiers differ by rounding, because vectors are summed in different orders, and AVX2 fuses products
// with sums.
//
//   baseline   the default target of the compiler: SSE2 on x86-64, NEON on aarch64
//   v3         x86-64-v3: AVX2 and FMA
//   v4         x86-64-v4: AVX-512 (F, BW, CD, DQ, VL)
#pragma once

#include <string>

#include "eigenfeat/tier_kind.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {

const char* name_of(Tier tier);
Vector<std::string> names_of(const Vector<Tier>& tiers);

// The tiers that this build and this processor have, ascending; never empty.
Vector<Tier> available_tiers();

Tier tier_in_use();

// Must not be called while another thread computes. Throws std::invalid_argument for a name other
// than baseline, v3 and v4, and for a tier that this build or this processor lacks.
void use_tier(const std::string& name);

// Calls use_tier for the environment variable EIGENFEAT_CPU, unless it is unset or empty.
void use_tier_of_environment();

}  // namespace eigenfeat
