// Names of the tiers; see tier.hpp. This is a separate header, so that the kernels, which are
// compiled once for each tier, do not include the declarations for callers.
#pragma once

namespace eigenfeat {

enum class Tier { baseline = 0, v3 = 1, v4 = 2 };

}  // namespace eigenfeat
