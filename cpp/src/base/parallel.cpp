#include "eigenfeat/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>

#include "eigenfeat/processors.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define EIGENFEAT_CAN_FORK 1
#endif

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifdef EIGENFEAT_LAPACK_PREFIX_SCIPY
extern "C" void scipy_openblas_set_num_threads(int);
extern "C" int scipy_openblas_get_num_threads();
#else
extern "C" void openblas_set_num_threads(int) __attribute__((weak));
extern "C" int openblas_get_num_threads() __attribute__((weak));
#endif

namespace eigenfeat {
namespace {

// Tools that set the threads of every BLAS in the process (threadpoolctl, and with it joblib and
// scikit-learn) also change the core's copy. A BLAS that starts threads inside a region is slow and
// prints warnings.
void keep_blas_pinned() {
  if (blas_threads() > 1) pin_blas();
}

std::atomic<InterruptCheck> interrupt_check{nullptr};
constexpr std::chrono::milliseconds kBetweenChecks{50};  // twenty checks per second at most

thread_local int interrupts_held_back = 0;
thread_local bool inside_region = false;

// Marks this thread as inside a region while the object exists.
struct RegionScope {
  RegionScope() : previous(inside_region) { inside_region = true; }
  ~RegionScope() { inside_region = previous; }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;
  bool previous;
};

// Shared state of the threads of a region: the next block, and the exception of the lowest failing
// block.
class Region {
 public:
  Region(index_t n_blocks, const BlockFunction& function)
      : n_blocks_(n_blocks), function_(function) {}

  void work(int thread) {
    const RegionScope scope;
    // Threads finish all blocks that they took, so that all blocks below a failing one have run.
    while (!failed_.load(std::memory_order_relaxed)) {
      const index_t block = next_.fetch_add(1);
      if (block >= n_blocks_) return;
      keep_blas_pinned();
      try {
        if (thread == 0) check_interrupt();
        function_(block, thread);
      } catch (...) {
        keep(block, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void keep(index_t block, std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (block < failing_block_) {
      failing_block_ = block;
      error_ = std::move(error);
    }
    failed_.store(true, std::memory_order_relaxed);
  }

  index_t n_blocks_;
  const BlockFunction& function_;
  std::atomic<index_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  index_t failing_block_ = std::numeric_limits<index_t>::max();
  std::exception_ptr error_;
};

// A forked child has none of the parent's threads, for which libgomp would wait forever. Its
// regions run on one thread.
#ifdef EIGENFEAT_CAN_FORK
std::atomic<bool> forked{false};
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
bool is_forked() {
  return forked.load(std::memory_order_relaxed);
}
#else
constexpr bool is_forked() {
  return false;
}
#endif

// Larger teams are useless, and requests such as 2^20 threads would fail.
int largest_team(int n_threads) {
  return n_threads <= 64 ? n_threads
                         : std::min(n_threads, std::max(64, 4 * available_processors()));
}

#ifdef _OPENMP
// The runtime of OpenMP is not instrumented. These annotations tell ThreadSanitizer that a region
// starts after earlier operations of the caller, and that the caller continues after the region.
#ifdef __SANITIZE_THREAD__
void leave_to_others(Region& region) {
  __tsan_release(&region);
}
void take_from_others(Region& region) {
  __tsan_acquire(&region);
}
__attribute__((no_sanitize_thread))
#else
void leave_to_others(Region&) {}
void take_from_others(Region&) {}
#endif
void run_on_team(Region& region, int n_threads) {
  leave_to_others(region);
  // Equal requests give teams of equal size: libgomp ends threads that a smaller team does not need.
#pragma omp parallel num_threads(n_threads)
  {
    take_from_others(region);
    region.work(omp_get_thread_num());
    leave_to_others(region);
  }
  take_from_others(region);
}
#else
void run_on_team(Region& region, int) {
  region.work(0);
}
#endif

}  // namespace

#ifdef _OPENMP
namespace {

// The environment may contain any number, which wraps around (OMP_NUM_THREADS=99999999999 becomes
// 1,215,752,191), and callers allocate memory for each thread.
int openmp_threads() {
  return largest_team(std::max(1, std::min(omp_get_max_threads(), omp_get_thread_limit())));
}

// At the time when the core is loaded.
const bool number_given = std::getenv("OMP_NUM_THREADS") != nullptr;
const int threads_at_first = openmp_threads();

}  // namespace

int default_threads() {
  if (is_forked()) return 1;
  const int threads = openmp_threads();
  // OpenMP counts processors when it is loaded. The count is too large if the process is later
  // bound to fewer processors, or has a CPU quota.
  if (number_given || threads != threads_at_first) return threads;
  return std::min(threads, available_processors());
}
#else
int default_threads() {
  return 1;
}
#endif

int resolve_threads(int requested) {
  return requested > 0 && !is_forked() ? largest_team(requested) : default_threads();
}

int threads_for(double work, int requested) {
  constexpr double worth_sharing = 4e6;  // about a millisecond on one core
  return work < worth_sharing ? 1 : resolve_threads(requested);
}

void set_interrupt_check(InterruptCheck check) {
  interrupt_check.store(check);
}

NoInterrupts::NoInterrupts() {
  ++interrupts_held_back;
}
NoInterrupts::~NoInterrupts() {
  --interrupts_held_back;
}

void check_interrupt() {
  thread_local std::chrono::steady_clock::time_point last{};
  const InterruptCheck check = interrupt_check.load(std::memory_order_relaxed);
  if (check == nullptr || interrupts_held_back > 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last < kBetweenChecks) return;
  last = now;
  check();
}

bool in_parallel_region() {
  return inside_region;
}

void for_blocks(index_t n_blocks, int n_threads, const BlockFunction& function) {
  if (n_blocks <= 0) return;
  Region region(n_blocks, function);
  const int threads = n_blocks == 1 || inside_region ? 1 : resolve_threads(n_threads);
  if (threads == 1) {
    region.work(0);
  } else {
    run_on_team(region, threads);
  }
  region.rethrow();
}

#ifdef EIGENFEAT_LAPACK_PREFIX_SCIPY
void pin_blas() {
  scipy_openblas_set_num_threads(1);
}
int blas_threads() {
  return scipy_openblas_get_num_threads();
}
#else
void pin_blas() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}
int blas_threads() {
  return openblas_get_num_threads != nullptr ? openblas_get_num_threads() : 0;
}
#endif

namespace {
// Runs when the core is loaded, before any call of BLAS.
[[maybe_unused]] const bool pinned = (pin_blas(), true);
}  // namespace

}  // namespace eigenfeat
