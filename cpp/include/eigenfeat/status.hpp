// Two error channels.
//
// Misuse of an argument throws std::invalid_argument with the text "name: expected what, got what"
// (the bindings turn it into ValueError). A numerical outcome is a Status for each item of a batch:
// the core does not throw, and the caller decides whether to raise or warn.
#pragma once

#include <stdexcept>
#include <string>

namespace eigenfeat {

enum class Status : int {
  ok = 0,                     // computed, and the residual is within the tolerance
  not_positive_definite = 1,  // the denominator is singular or indefinite to working precision
  not_converged = 2,          // LAPACK reported a failure to converge
  inaccurate = 3,             // computed, but a residual exceeds the tolerance
};

const char* describe(Status status);

// Throws std::invalid_argument("name: expected <expected>, got <got>").
[[noreturn]] inline void refuse(const char* name, const std::string& expected,
                                const std::string& got) {
  throw std::invalid_argument(std::string(name) + ": expected " + expected + ", got " + got);
}

// Calls `refuse` unless the condition holds. The texts are formed in either case; loops over
// samples or entries should therefore test the condition and call `refuse`.
inline void require(bool condition, const char* name, const std::string& expected,
                    const std::string& got) {
  if (!condition) refuse(name, expected, got);
}

}  // namespace eigenfeat
