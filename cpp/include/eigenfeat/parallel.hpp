// Parallel loops over blocks.
//
// for_blocks(n, threads, f) calls f(block, thread) once for every block in [0, n). Blocks are
// scheduled dynamically, so that f may write only to the data of its block and to the scratch of
// its thread. The division into blocks must depend on the size of the problem alone, never on the
// number of threads: results are then bit-for-bit identical for any number of threads.
//
// for_blocks opens a parallel region of OpenMP. If f throws, the remaining blocks are skipped, and
// the exception of the lowest failing block is rethrown in the calling thread after the join. A
// region inside a region runs serially, as does every region in a forked child, where the threads
// of the parent do not exist, and in a build without OpenMP. BLAS always runs on one thread:
// pin_blas is called when the core is loaded, and again before a block if other code in the process
// changed the number.
#pragma once

#include <functional>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// The number of threads of OpenMP, if it was set (OMP_NUM_THREADS, omp_set_num_threads); otherwise
// the number of processors that this process may use (processors.hpp). 1 in a forked child.
int default_threads();

// The requested number of threads, or default_threads() if it is not positive; 1 in a forked child.
int resolve_threads(int requested);

// As resolve_threads, but 1 if the work (in flops, approximately) is too small to share: starting
// threads takes about 10 us, and much longer on a busy machine.
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

// Sets a function that the calling thread of a region calls between blocks, at most about twenty
// times per second; nullptr for none. An exception of the function ends the region like an exception
// of a block. The function of the bindings lets Ctrl-C interrupt long computations.
using InterruptCheck = void (*)();
void set_interrupt_check(InterruptCheck check);

// Calls the function of set_interrupt_check, if it is due; for long loops outside regions.
void check_interrupt();

// While an object exists, its thread does not call the function of set_interrupt_check: a change in
// place must be completed.
class NoInterrupts {
 public:
  NoInterrupts();
  ~NoInterrupts();
  NoInterrupts(const NoInterrupts&) = delete;
  NoInterrupts& operator=(const NoInterrupts&) = delete;
};

// Sets the core's copy of BLAS to one thread, for the whole process.
void pin_blas();

// Number of threads of the core's copy of BLAS; 1 after pin_blas, 0 if the library does not report
// it.
int blas_threads();

}  // namespace eigenfeat
