// Private to the core: sizes of padded memory.
#pragma once

#include "kernels/line.hpp"

namespace eigenfeat {

// n rounded up to a multiple of the numbers of type T in a cache line.
template <class T>
index_t whole_lines(index_t n) {
  return (n + kLane<T> - 1) / kLane<T> * kLane<T>;
}

}  // namespace eigenfeat
