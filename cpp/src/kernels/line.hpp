// Private to the core: the unit of packed data, one cache line of numbers.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Numbers of T in a line.
template <class T>
inline constexpr index_t kLane = static_cast<index_t>(64 / sizeof(T));

}  // namespace eigenfeat
