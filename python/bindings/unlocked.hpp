// Python's lock, given up while the core works.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

namespace eigenfeat::bindings {

// Why not pybind11's gil_scoped_release: Python before 3.14 ends a thread that asks for the lock
// while the interpreter shuts down, by unwinding its stack. A destructor must not be unwound, and the
// whole process would abort: a daemon thread in the core would do that to any program that ends.
// Such a thread sleeps instead until the process is gone, as it does in Python 3.14.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (
        ...) {  // nothing else can come out of a C function; going on or rethrowing would abort
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace eigenfeat::bindings
