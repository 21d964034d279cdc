// Threads that sleep until there is work, shared by all callers in the process.
//
// Why not OpenMP's own teams: a team waits at the end of a region for every one of its threads, also
// for those that came too late to do anything, and waits by spinning. Beside another program that
// costs several times the work itself. libgomp's teams do not survive fork, and end the process where
// a thread cannot be created. Here a caller takes back what nobody has begun, sleeps while it waits,
// gets a new pool in a forked child, and does the work alone where there are no threads to be had.
#pragma once

#include <functional>

namespace eigenfeat {

// Calls work(0) here and work(1), ..., work(n_threads - 1) on threads of the pool. Those that no
// thread has begun when work(0) returns are not called at all: each call must therefore go on until
// nothing is left to do. Returns when every call that was begun has returned. work must not throw.
void run_on_pool(int n_threads, const std::function<void(int)>& work);

// More threads than these are not started, whatever is asked: a few for each processor.
int most_pool_threads();

// True in a process that has been forked since the core was loaded.
bool is_forked();

}  // namespace eigenfeat
