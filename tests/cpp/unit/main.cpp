// doctest's main function, for unit_tests and stress_tests. The tests run on the tier in
// EIGENFEAT_CPU, or on the machine's best. The exit code is 77 if the machine lacks that tier.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <stdexcept>

#include "eigenfeat/tier.hpp"

int main(int argc, char** argv) {
  try {
    eigenfeat::use_tier_of_environment();
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 77;
  }
  std::printf("tier: %s\n", eigenfeat::name_of(eigenfeat::tier_in_use()));
  return doctest::Context(argc, argv).run();
}
