// Releases Python's global lock while the core works.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

namespace eigenfeat::bindings {

// pybind11's gil_scoped_release is not used for this reason: if a daemon thread requests the lock while
// the interpreter shuts down, Python before 3.14 ends the thread by unwinding its stack. Unwinding a
// destructor aborts the process. Here the thread sleeps until the process ends, as in Python 3.14.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // the unwinding by Python; returning or rethrowing would abort
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace eigenfeat::bindings
