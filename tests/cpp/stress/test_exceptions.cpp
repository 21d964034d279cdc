// Exceptions of worker threads reach the caller, for any number of threads and in every repetition.
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using support::message_of;

namespace {

void throw_from(index_t first, index_t block) {
  if (block >= first) throw std::runtime_error("block " + std::to_string(block));
}

}  // namespace

TEST_CASE("the exception of the lowest failing block is rethrown in every repetition") {
  for (const int n_threads : {1, 2, 7}) {
    int wrong = 0;
    for (int repetition = 0; repetition < 200; ++repetition) {
      const index_t first = repetition % 5;
      const std::string message = message_of<std::runtime_error>([&] {
        for_blocks(9, n_threads, [first](index_t block, int) { throw_from(first, block); });
      });
      if (message != "block " + std::to_string(first)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("all blocks below the failing one are visited") {
  for (const int n_threads : {1, 2, 7}) {
    int missing = 0;
    for (int repetition = 0; repetition < 100; ++repetition) {
      Vector<std::atomic<int>> visits(40);
      try {
        for_blocks(40, n_threads, [&](index_t block, int) {
          ++visits[block];
          throw_from(20, block);
        });
        ++missing;
      } catch (const std::runtime_error&) {
        for (index_t block = 0; block < 20; ++block) missing += visits[block] == 1 ? 0 : 1;
      }
    }
    CHECK(missing == 0);
  }
}

TEST_CASE("exceptions of several callers and of nested regions do not mix") {
  std::atomic<int> wrong{0};
  Vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&wrong, caller] {
      for (int repetition = 0; repetition < 50; ++repetition) {
        const std::string expected = "caller " + std::to_string(caller);
        const std::string message = message_of<std::runtime_error>([&] {
          for_blocks(8, 3, [&](index_t outer, int) {
            for_blocks(4, 2, [&](index_t inner, int) {
              if (outer >= 2 && inner == 3) throw std::runtime_error(expected);
            });
          });
        });
        if (message != expected) ++wrong;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK(wrong == 0);
}
