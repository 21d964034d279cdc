// Threads, in one room.
//
// for_blocks(n, threads, f) calls f(block, thread) once for every block in [0, n); blocks are
// handed out dynamically, so f may only write to what belongs to its block, or to the scratch slot
// of its thread. Which blocks there are must depend on the problem's size alone, never on the
// number of threads: then 1, 2 and 64 threads give the same bits.
//
// The engine is OpenMP: for_blocks opens a parallel region. An exception thrown by f is kept, the
// remaining blocks are skipped, and the exception of the lowest failing block is rethrown in the
// calling thread after the join. A region inside a region runs serially; so does every region in a
// forked child, which has none of its parent's threads, and in a build without OpenMP. BLAS runs on
// one thread in every call: pin_blas is done when the core is loaded, and again before a block where
// somebody else in the process has changed it.
#pragma once

#include <functional>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// All threads that OpenMP gives (OMP_NUM_THREADS, omp_set_num_threads). Where nobody has said how many,
// the processors that this process may use: see processors.hpp. 1 in a forked child.
int default_threads();

// requested <= 0 means default_threads(); 1 in a forked child.
int resolve_threads(int requested);

// The same, but 1 where the work (in flops, about) is too little to share: starting threads costs
// some 10 us, and much more on a busy machine.
int threads_for(double work, int requested);

// True inside for_blocks, where a further for_blocks would run serially.
bool in_parallel_region();

using BlockFunction = std::function<void(index_t block, int thread)>;
void for_blocks(index_t n_blocks, int n_threads, const BlockFunction& function);

// Splits [0, n) into ceil(n / width) ranges and calls f(begin, end, thread) for each.
template <class F>
void for_ranges(index_t n, index_t width, int n_threads, F&& f) {
  for_blocks((n + width - 1) / width, n_threads, [&](index_t block, int thread) {
    const index_t begin = block * width;
    const index_t end = begin + width < n ? begin + width : n;
    f(begin, end, thread);
  });
}

// What the calling thread of a region does between blocks, at most some twenty times a second: what it
// throws ends the region as an exception of a block does. So Ctrl-C gets through to long work, though
// the core knows nothing of signals. nullptr: nothing.
using InterruptCheck = void (*)();
void set_interrupt_check(InterruptCheck check);

// The same for long loops that are no regions.
void check_interrupt();

// While it lives this thread does not ask: something is changed in place, and half of it is no good.
class NoInterrupts {
 public:
  NoInterrupts();
  ~NoInterrupts();
  NoInterrupts(const NoInterrupts&) = delete;
  NoInterrupts& operator=(const NoInterrupts&) = delete;
};

// Sets our copy of BLAS to one thread. Global to the library.
void pin_blas();

// How many threads our copy of BLAS uses; 1 after pin_blas, 0 where the library cannot say.
int blas_threads();

}  // namespace eigenfeat
