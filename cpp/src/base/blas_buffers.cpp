#include "base/blas_buffers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/thread_pool.hpp"
#include "eigenfeat/parallel.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define EIGENFEAT_POSIX 1
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#endif

namespace eigenfeat {
namespace {

// What OpenBLAS maps: 32 MiB in the builds for Python's wheels, 128 MiB by default on x86-64.
#ifdef EIGENFEAT_LAPACK_PREFIX_SCIPY
constexpr std::size_t kBuffer = std::size_t{32} << 20;
#else
constexpr std::size_t kBuffer = std::size_t{128} << 20;
#endif
constexpr std::size_t kBeside = std::size_t{4} << 20;  // what the first call takes besides
// What the first call of a thread takes.
constexpr std::size_t kOfThread = std::size_t{1} << 18;
constexpr std::size_t kPlenty = std::size_t{512} << 20;  // must be left after further buffers

bool limits_are_set() {
#ifdef EIGENFEAT_POSIX
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return true;
  return getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
#else
  return false;
#endif
}

// What note_memory_limits last saw: two system calls take longer than many a call of BLAS.
std::atomic<bool> limited{limits_are_set()};

// Calls under way, each thread's in one of many places, so that threads do not wait for one another.
struct alignas(64) Place {
  std::atomic<int> calls{0};
};
constexpr int kPlaces = 64;
Place places[kPlaces];
std::atomic<int> next_place{0};
thread_local int place = -1;

// OpenBLAS unmaps its buffers when the process ends, be a thread in it or not: first those that are in
// it come out, and no more go in. A call that lasts longer is not waited for.
std::atomic<bool> ending{false};
struct AtExit {
  ~AtExit() {
    ending.store(true);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (const Place& one : places)
      while (one.calls.load() > 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
} at_exit;

void enter() {
  if (place < 0) place = next_place.fetch_add(1) % kPlaces;
  places[place].calls.fetch_add(1);
  if (!ending.load()) return;
  places[place].calls.fetch_sub(1);
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void leave() {
  places[place].calls.fetch_sub(1);
}

struct Buffers {
  std::mutex mutex;
  std::condition_variable one_is_free;
  std::atomic<int> mapped{0};                      // known to be; what is in use counts
  std::atomic<int> inside{0};                      // calls under way that are counted
  int not_seen = std::numeric_limits<int>::max();  // so many calls at once were tried in vain
};

// Never deleted: threads may be in BLAS while the process ends.
std::atomic<Buffers*> current{nullptr};
std::atomic<int> inherited{0};

Buffers& buffers() {
  Buffers* there = current.load(std::memory_order_acquire);
  if (there != nullptr) return *there;
  auto* fresh = new Buffers;
  fresh->mapped.store(inherited.load());
  if (current.compare_exchange_strong(there, fresh)) return *fresh;
  delete fresh;
  return *there;
}

#ifdef EIGENFEAT_POSIX
// A child has the mutex as it happened to be, and nobody to give back what its parent's threads held.
void forget_calls() {
  if (const Buffers* there = current.load())
    inherited.store(std::max(0, there->mapped.load() - there->inside.load()));
  current.store(nullptr);
  for (Place& one : places) one.calls.store(0);
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, forget_calls);
#endif

thread_local int depth = 0;        // of counted calls, or of those that map buffers
thread_local bool called = false;  // whether this thread has its part of OpenBLAS's variables

struct Uncounted {
  Uncounted() { ++depth; }
  ~Uncounted() { --depth; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

// Products that take long enough to be seen under way: of ones, so that the last entry is `kInner`
// at the end only and less while the call holds its buffer.
class Products {
 public:
  static constexpr index_t kSide = 256, kInner = 1024;

  explicit Products(int n_calls)
      : factor_(static_cast<std::size_t>(kSide * kInner), 1.0),
        out_(static_cast<std::size_t>(n_calls), std::vector<double>(kSide * kSide)),
        round_(static_cast<std::size_t>(n_calls)),
        before_(static_cast<std::size_t>(n_calls)) {}

  void run(int call) {
    const Uncounted uncounted;
    const auto i = static_cast<std::size_t>(call);
    set(out_[i].front(), -1);
    set(out_[i].back(), -1);
    ++round_[i];
    product_with_buffer(kSide, kInner, factor_.data(), out_[i].data());
    ++round_[i];
  }

  // Whether all were under way at one time: each had written before the last was asked whether it
  // was done.
  bool all_under_way() {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      before_[i] = round_[i].load();
      if (get(out_[i].front()) < 0) return false;
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      const bool done = get(out_[i].back()) >= static_cast<double>(kInner);
      if (done || round_[i].load() != before_[i] || before_[i] % 2 == 0) return false;
    }
    return true;
  }

 private:
  static void set(double& entry, double value) { __atomic_store(&entry, &value, __ATOMIC_SEQ_CST); }
  static double get(const double& entry) {
    double value = 0;
    __atomic_load(&entry, &value, __ATOMIC_SEQ_CST);
    return value;
  }

  std::vector<double> factor_;
  std::vector<std::vector<double>> out_;
  std::vector<std::atomic<int>> round_;  // odd within a call
  std::vector<int> before_;
};

// Whether so many calls have been seen under way at once, which leaves a buffer for each.
bool seen_together(int n_calls) {
  Products products(n_calls);
  std::atomic<bool> enough{false};
  bool seen = false;
  run_on_pool(n_calls + 1, [&](int thread) {
    if (thread > 0) {
      while (!enough.load()) products.run(thread - 1);
      return;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (!seen && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      seen = products.all_under_way();
    }
    enough.store(true);
  });
  return seen;
}

// The first buffer, or none. Under the mutex, with no counted call inside.
bool map_first(Buffers& there) {
  if (!there_is_room(kBuffer + kBeside)) return false;
  Products(1).run(0);
  there.mapped.store(1);
  return true;
}

}  // namespace

bool there_is_room(std::size_t bytes) {
#ifdef EIGENFEAT_POSIX
  void* const found =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return false;
  munmap(found, bytes);
#else
  (void)bytes;
#endif
  return true;
}

void note_memory_limits() {
  limited.store(limits_are_set(), std::memory_order_relaxed);
}

bool memory_is_limited() {
  return limited.load(std::memory_order_relaxed);
}

void touch_thread_variables() {
  volatile int* const ours = &depth;
  *ours = 0;
  // Kept in a volatile variable: the function is declared pure, and its call would be left out.
  const volatile int in_flight = std::uncaught_exceptions();
  (void)in_flight;
}

int reserve_blas_buffers(int n_calls) {
  try {
    Buffers& there = buffers();
    const std::lock_guard<std::mutex> lock(there.mutex);
    if (there.mapped == 0 && there.inside == 0 && !map_first(there)) return 0;
    int calls = std::min({n_calls, there.not_seen - 1, most_pool_threads()});
    for (; calls > there.mapped; --calls) {
      const auto further = static_cast<std::size_t>(calls - there.mapped);
      if (!there_is_room(further * kBuffer + kPlenty)) continue;
      if (seen_together(calls)) {
        there.mapped.store(calls);
      } else {
        there.not_seen = calls;
      }
      break;
    }
    return there.mapped;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void reserve_blas_buffers_if_limited(int n_calls) {
  note_memory_limits();
  if (memory_is_limited() && buffers().mapped < n_calls) reserve_blas_buffers(n_calls);
}

BlasCall::BlasCall() {
  if (++depth > 1) return;
  enter();
  if (!memory_is_limited()) return;
  try {
    Buffers& there = buffers();
    std::unique_lock<std::mutex> lock(there.mutex);
    if (there.mapped == 0 && !map_first(there)) throw std::bad_alloc();
    there.one_is_free.wait(lock, [&] { return there.inside < there.mapped; });
    // The variables that OpenBLAS has for each thread (140 kB) are made when it first calls; the
    // system's library ends the process where it cannot. Asked after the wait: those that were
    // inside have taken memory meanwhile.
    if (!called && !there_is_room(kOfThread)) {
      there.one_is_free.notify_one();  // the next one does not wait for this call
      throw std::bad_alloc();
    }
    called = true;
    ++there.inside;
    counted_ = true;
  } catch (...) {
    leave();
    --depth;
    throw;
  }
}

BlasCall::~BlasCall() {
  if (--depth == 0) leave();
  if (!counted_) return;
  Buffers& there = buffers();
  {
    const std::lock_guard<std::mutex> lock(there.mutex);
    --there.inside;
  }
  there.one_is_free.notify_one();
}

}  // namespace eigenfeat
