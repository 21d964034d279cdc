// Private to the core: sizes of padded memory.
#pragma once

#include "kernels/line.hpp"

namespace eigenfeat {

// n numbers of T, rounded up to whole cache lines.
template <class T>
index_t whole_lines(index_t n) {
  return (n + kLane<T> - 1) / kLane<T> * kLane<T>;
}

}  // namespace eigenfeat
