// Private to the core: random orders that depend on a seed alone.
#pragma once

#include <cstdint>
#include <utility>

#include "base/split_mix.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Random numbers by SplitMix64.
class RandomOrder {
 public:
  explicit RandomOrder(std::uint64_t seed) : state_(seed) {}

  // Fisher and Yates; n below 2^32.
  void shuffle(Vector<index_t>& order) {
    for (index_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[below(left)]);
  }

 private:
  index_t below(index_t n) {
    const std::uint64_t z = mixed_bits(state_ += kGoldenGamma);
    return static_cast<index_t>(((z >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

  std::uint64_t state_;
};

}  // namespace eigenfeat
