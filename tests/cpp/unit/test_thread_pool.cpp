// The pool behind for_blocks: callers do not wait for threads that come too late, a forked child has
// a pool of its own, and an interrupt ends a region.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/processors.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace eigenfeat;
using namespace std::chrono_literals;

namespace {

thread_local bool no_memory = false;

}  // namespace

// Memory can be refused to one thread. Every form of new that ends in these forms of delete is
// replaced, since sanitizers have forms of their own, which do not call one another.
void* operator new(std::size_t bytes) {
  void* const memory = no_memory ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return no_memory ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

int most_threads() {
  return std::max(64, 4 * available_processors());
}

// Not where the core was built to use OpenMP's teams.
bool uses_pool() {
  for_blocks(2, 2, [](index_t, int) {});
  return pool_threads() > 0;
}

}  // namespace

TEST_CASE("every thread takes part that has the time to come") {
  std::atomic<int> there{0};
  const auto end = std::chrono::steady_clock::now() + 20s;
  for_blocks(5, 5, [&](index_t, int) {
    ++there;
    while (there < 5 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  CHECK(there == 5);
  if (uses_pool()) CHECK(pool_threads() >= 4);
}

TEST_CASE("a caller waits for blocks that have begun") {
  std::atomic<bool> begun{false}, ended{false};
  for_blocks(2, 2, [&](index_t, int thread) {
    if (thread == 0) {
      while (!begun) std::this_thread::yield();
    } else {
      begun = true;
      std::this_thread::sleep_for(5ms);  // longer than a caller stays awake
      ended = true;
    }
  });
  CHECK(ended);
}

TEST_CASE("many short regions, none of whose blocks is lost") {
  index_t wrong = 0;
  for (index_t repetition = 0; repetition < 3000; ++repetition) {
    std::atomic<index_t> sum{0};
    for_blocks(3, 3, [&](index_t block, int) { sum += block + repetition; });
    if (sum != 3 + 3 * repetition) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a caller does not wait for threads that others keep busy") {
  if (!uses_pool()) return;
  const int n_threads = pool_threads() + 1;
  std::atomic<bool> stop{false};
  std::atomic<int> busy{0};
  std::thread other([&] {
    for_blocks(n_threads, n_threads, [&](index_t, int) {
      ++busy;
      while (!stop) std::this_thread::sleep_for(1ms);
    });
  });
  while (busy < n_threads) std::this_thread::yield();
  std::atomic<index_t> sum{0};
  for_blocks(100, n_threads, [&](index_t block, int) { sum += block; });
  CHECK(sum == 4950);
  CHECK_FALSE(stop);
  stop = true;
  other.join();
}

TEST_CASE("absurd numbers of threads are no harm") {
  std::atomic<index_t> count{0};
  for_blocks(100'000, 1 << 20, [&](index_t, int) { ++count; });
  CHECK(count == 100'000);
  CHECK(pool_threads() <= most_threads());
}

TEST_CASE("a region needs no memory of its own") {
  std::atomic<index_t> sum{0};
  const BlockFunction add = [&sum](index_t block, int) { sum += block; };
  const auto without_memory = [&](int n_threads) {
    no_memory = true;
    try {
      for_blocks(100, n_threads, add);
    } catch (const std::bad_alloc&) {
      sum = -1;
    }
    no_memory = false;
    return sum.exchange(0);
  };
  for_blocks(2, 2, [](index_t, int) {});
  for (int repetition = 0; repetition < 50; ++repetition) CHECK(without_memory(2) == 4950);
  CHECK(without_memory(most_threads()) == 4950);  // threads that cannot be started
}

TEST_CASE("an interrupt ends a region, whatever its number of threads") {
  struct Interrupted : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const int n_threads : {1, 2, 7}) {
    set_interrupt_check([] { throw Interrupted("now"); });
    std::atomic<int> blocks{0};
    CHECK_THROWS_AS(for_blocks(100'000, n_threads,
                               [&](index_t, int) {
                                 ++blocks;
                                 std::this_thread::sleep_for(1ms);
                               }),
                    Interrupted);
    CHECK(blocks < 10'000);
    set_interrupt_check(nullptr);
    CHECK_FALSE(in_parallel_region());
    blocks = 0;
    for_blocks(10, n_threads, [&](index_t, int) { ++blocks; });
    CHECK(blocks == 10);
  }
}

TEST_CASE("only the calling thread asks for interrupts, and not at every block") {
  static std::thread::id caller;
  static std::atomic<int> asked, by_others;
  caller = std::this_thread::get_id();
  asked = by_others = 0;
  set_interrupt_check([] {
    ++asked;
    if (std::this_thread::get_id() != caller) ++by_others;
  });
  for_blocks(300, 3, [](index_t, int) { std::this_thread::sleep_for(1ms); });
  set_interrupt_check(nullptr);
  CHECK(by_others == 0);
  CHECK(asked <= 20);
}

#if defined(__unix__) || defined(__APPLE__)
TEST_CASE("threads of the pool take no signals") {
  if (!uses_pool()) return;
  std::atomic<int> there{0}, open{0};
  for_blocks(2, 2, [&](index_t, int thread) {
    ++there;
    while (there < 2) std::this_thread::yield();
    if (thread == 0) return;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1})
      open += sigismember(&blocked, signal) == 0 ? 1 : 0;
    for (const int fault : {SIGSEGV, SIGFPE}) open += sigismember(&blocked, fault) == 1 ? 1 : 0;
  });
  CHECK(open == 0);
}

// ThreadSanitizer cannot follow a fork of several threads.
#ifndef __SANITIZE_THREAD__
TEST_CASE("a forked child has a pool of its own, and so has its child") {
  const auto sum = [] {
    std::atomic<index_t> total{0};
    std::atomic<int> there{0};
    for_blocks(2, 2, [&](index_t block, int) {  // two blocks that wait for each other: two threads
      total += block + 1;
      ++there;
      while (there < 2) std::this_thread::yield();
    });
    return total.load();
  };
  CHECK(sum() == 3);
  const std::function<int(int)> descend = [&](int generations) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      bool good = pool_threads() == 0 && sum() == 3 && pool_threads() > 0;
      if (generations > 1) good = descend(generations - 1) == 0 && good;
      _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  };
  CHECK(descend(2) == 0);
  CHECK(sum() == 3);
}
#endif
#endif
