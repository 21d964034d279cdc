// Private to the core: the unit in which packed data is laid out, one cache line of numbers.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Numbers of T in a line.
template <class T>
inline constexpr index_t kLane = static_cast<index_t>(64 / sizeof(T));

}  // namespace eigenfeat
