// Private to local_means: candidates for the k nearest rows, from distances with error bounds.
//
// The exact distance of a candidate is in [low, low + 2 error]. The list keeps the candidates that
// may be among the k nearest, those whose `low` is at most the k-th smallest upper end. The final
// list does not depend on the order in which candidates are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
class NearList {
 public:
  struct Candidate {
    T low;
    T high;
    std::int32_t place;
  };

  void start(index_t k) {
    k_ = k;
    limit_ = std::numeric_limits<T>::infinity();
    candidates_.clear();
    next_prune_ = k_ + kSlack;
  }
  // Candidates with a larger `low` need not be added.
  T limit() const { return limit_; }
  void push(T low, T high, std::int32_t place) {
    candidates_.push_back({low, high, place});
    if (candidates_.size() >= next_prune_) prune();
  }
  // The final candidates, by ascending `low`.
  Vector<Candidate>& finish() {
    prune();
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.low != b.low ? a.low < b.low : a.place < b.place;
    });
    return candidates_;
  }

 private:
  static constexpr index_t kSlack = 16;  // least number of pushes between two prunings

  void prune() {
    if (candidates_.size() > k_) {
      ends_.clear();
      for (const Candidate& c : candidates_) ends_.push_back(c.high);
      const auto kth = ends_.begin() + (k_ - 1);
      std::nth_element(ends_.begin(), kth, ends_.end());
      limit_ = *kth;
      candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                       [&](const Candidate& c) { return c.low > limit_; }),
                        candidates_.end());
    }
    next_prune_ = candidates_.size() + std::max(candidates_.size() / 2, kSlack);
  }

  index_t k_ = 0;
  index_t next_prune_ = 0;
  T limit_ = 0;
  Vector<Candidate> candidates_;
  Vector<T> ends_;
};

}  // namespace eigenfeat
