// Tiers: which instruction set the kernels use.
//
// The files of cpp/src/kernels are compiled once for each tier that the compiler knows, against the
// width and the number of that tier's registers; the best one that the machine has is chosen when
// the core is loaded. Results agree bit for bit within a tier, whatever the number of threads;
// between tiers they agree to rounding, as vectors are summed in other orders and AVX2 fuses
// products with sums.
//
//   baseline   what the compiler targets by itself: SSE2 on x86-64, NEON on aarch64
//   v3         x86-64-v3: AVX2 and FMA
//   v4         x86-64-v4: AVX-512 (F, BW, CD, DQ, VL)
#pragma once

#include <string>

#include "eigenfeat/tier_kind.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {

const char* name_of(Tier tier);
Vector<std::string> names_of(const Vector<Tier>& tiers);

// Those that this build and this machine have, ascending; never empty.
Vector<Tier> available_tiers();

Tier tier_in_use();

// Not while another thread computes. Throws std::invalid_argument for a name that is none of
// baseline, v3 and v4, and for a tier that this build or this machine lacks.
void use_tier(const std::string& name);

// use_tier of the environment variable EIGENFEAT_CPU; nothing where it is unset or empty.
void use_tier_of_environment();

}  // namespace eigenfeat
