// The tiers' names; see tier.hpp. A header of its own, so that the kernels, compiled once a tier, do not
// depend on what only callers need.
#pragma once

namespace eigenfeat {

enum class Tier { baseline = 0, v3 = 1, v4 = 2 };

}  // namespace eigenfeat
