// Work buffers of OpenBLAS, made certain of before a call needs them.
//
// OpenBLAS maps a buffer whenever more calls are in it at once than ever before, keeps it for ever,
// and ends the process where it gets none. Where the process may have only so many addresses
// (ulimit -v) no more calls are let in at once than there are buffers known to be mapped. Others
// wait; where there is not one, and none can be had, the call throws std::bad_alloc.
#pragma once

#include <cstddef>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Maps buffers for so many calls at once, if there is plenty of room for more than one; how many
// calls are known to find theirs. Not within a region.
int reserve_blas_buffers(int n_calls);

// The same before a region, but nothing where addresses are not limited.
void reserve_blas_buffers_if_limited(int n_calls);

// C <- A A^T, both column-major, C of side rows and A of inner columns: a call that needs a buffer.
// In lapack.cpp, which alone knows BLAS.
void product_with_buffer(index_t side, index_t inner, const double* a, double* c);

// Whether ulimit -v or -d (RLIMIT_AS, RLIMIT_DATA) was set when note_memory_limits last looked.
bool memory_is_limited();

// Whether so many bytes could be mapped now.
bool there_is_room(std::size_t bytes);

// Makes this thread's variables, those of the core and of the C++ library.
void touch_thread_variables();

// For as long as a call may hold a buffer, which OpenBLAS unmaps when the process ends: calls under way
// are waited for then, a second at most, and no further ones begin.
class BlasCall {
 public:
  BlasCall();
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

 private:
  bool counted_ = false;
};

}  // namespace eigenfeat
