#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/processors.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define EIGENFEAT_POSIX 1
#include <pthread.h>
#include <signal.h>
#endif

namespace eigenfeat {
namespace {

// Waking a thread takes longer than many a region. One that has just finished looks out for more so
// long before it sleeps, and a caller so long before it sleeps until its last thread is done.
constexpr std::chrono::microseconds kAwake{50};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until ready() or until the time is up.
template <class Ready>
void stay_awake(Ready&& ready) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  while (!ready()) {
    for (int i = 0; i < 16; ++i) pause();
    if (std::chrono::steady_clock::now() >= end) return;
  }
}

// Signals are for the threads of the program, whose system calls they interrupt.
class SignalsBlocked {
 public:
#ifdef EIGENFEAT_POSIX
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // What the machine raises for a fault goes to the thread that caused it.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
#else
  SignalsBlocked() = default;
#endif
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
#ifdef EIGENFEAT_POSIX
  sigset_t before_;
#endif
};

// One call of run_on_pool. It lives on its caller's stack, and changes under the pool's mutex only.
// It is its own entry in the pool's list, so that a call needs no memory that could be refused.
struct Job {
  const std::function<void(int)>* work;
  int next;                     // what the next thread calls
  int end;                      // one past the last
  std::atomic<int> running{0};  // calls that threads of the pool are in
  std::condition_variable done;
  Job* before = nullptr;  // in the pool's list
  Job* after = nullptr;

  Job(const std::function<void(int)>& f, int n_threads) : work(&f), next(1), end(n_threads) {}
};

class Pool {
 public:
  void run(int n_threads, const std::function<void(int)>& work) {
    Job job(work, n_threads);
    int to_wake = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      wanted_ += n_threads - 1;
      hire(n_threads - 1);
      append(job);
      to_wake = std::min(n_threads - 1, sleeping_);
    }
    for (int i = 0; i < to_wake; ++i) work_to_do_.notify_one();
    work(0);
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ -= n_threads - 1;
    if (job.next < job.end) remove(job);
    if (job.running != 0) {
      lock.unlock();
      stay_awake([&] { return job.running == 0; });
      lock.lock();  // also for who has just finished: it holds the lock until it is done with job
      job.done.wait(lock, [&] { return job.running == 0; });
    }
  }

  int size() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return threads_;
  }

 private:
  // Enough threads for this job, and for all jobs together as far as there are processors.
  void hire(int for_this) {
    if (threads_ >= wanted_) return;
    const int together = std::min(wanted_, available_processors());
    const int enough = std::min(most_pool_threads(), std::max(for_this, together));
    if (threads_ >= enough) return;
    [[maybe_unused]] const SignalsBlocked blocked;
    for (; threads_ < enough; ++threads_) {
      try {
        std::thread([this] { serve(); }).detach();
      } catch (const std::system_error&) {
        return;  // those that there are, and the caller, do all the work
      } catch (const std::bad_alloc&) {
        return;
      }
    }
  }

  void append(Job& job) {
    job.before = last_;
    (last_ == nullptr ? first_ : last_->after) = &job;
    last_ = &job;
    n_jobs_.fetch_add(1, std::memory_order_release);
  }

  void remove(Job& job) {
    (job.before == nullptr ? first_ : job.before->after) = job.after;
    (job.after == nullptr ? last_ : job.after->before) = job.before;
    n_jobs_.fetch_sub(1, std::memory_order_release);
  }

  [[noreturn]] void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (first_ == nullptr) {
        lock.unlock();
        stay_awake([&] { return n_jobs_.load(std::memory_order_acquire) > 0; });
        lock.lock();
        ++sleeping_;
        work_to_do_.wait(lock, [&] { return first_ != nullptr; });
        --sleeping_;
      }
      Job& job = *first_;
      const int mine = job.next++;
      ++job.running;
      if (job.next == job.end) remove(job);
      lock.unlock();
      (*job.work)(mine);
      lock.lock();
      if (--job.running == 0) job.done.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_to_do_;
  Job* first_ = nullptr;  // those with calls that nobody has begun, in the order of coming
  Job* last_ = nullptr;
  std::atomic<int> n_jobs_{0};  // how many these are, for a look without the lock
  int wanted_ = 0;              // threads that all jobs together would like
  int threads_ = 0;
  int sleeping_ = 0;
};

// Never deleted: its threads sleep on it until the process ends.
std::atomic<Pool*> current{nullptr};
std::atomic<bool> forked{false};

// None where there is no memory for it.
Pool* pool() {
  Pool* there = current.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  auto* fresh = new (std::nothrow) Pool;
  if (fresh == nullptr || current.compare_exchange_strong(there, fresh)) return fresh;
  delete fresh;
  return there;
}

#ifdef EIGENFEAT_POSIX
// A child has none of its parent's threads, and the pool's mutex as it happened to be.
void forget_pool() {
  current.store(nullptr);
  forked.store(true);
}
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
#endif

}  // namespace

void run_on_pool(int n_threads, const std::function<void(int)>& work) {
  Pool* const threads = n_threads > 1 ? pool() : nullptr;
  if (threads == nullptr) {
    work(0);
  } else {
    threads->run(n_threads, work);
  }
}

int most_pool_threads() {
  return std::max(64, 4 * available_processors());
}

int pool_threads() {
  Pool* there = current.load(std::memory_order_acquire);
  return there == nullptr ? 0 : there->size();
}

bool is_forked() {
  return forked.load();
}

}  // namespace eigenfeat
