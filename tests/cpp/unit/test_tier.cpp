#include "eigenfeat/tier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

using namespace eigenfeat;

TEST_CASE("tiers agree with the compiler's CPU detection") {
  const auto found = available_tiers();
  REQUIRE(!found.empty());
  CHECK(found.front() == Tier::baseline);
  CHECK(std::is_sorted(found.begin(), found.end()));
#if defined(EIGENFEAT_TIERS) && defined(__GNUC__) && !defined(_MSC_VER)
  __builtin_cpu_init();
  // Every x86-64 has SSE2. With zig, the compiler's detection finds nothing.
  if (!__builtin_cpu_supports("sse2")) return;
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  CHECK((std::find(found.begin(), found.end(), Tier::v3) != found.end()) == v3);
  CHECK((std::find(found.begin(), found.end(), Tier::v4) != found.end()) == v4);
#endif
}

TEST_CASE("a tier is chosen by name") {
  const Tier before = tier_in_use();
  for (const Tier tier : available_tiers()) {
    use_tier(name_of(tier));
    CHECK(tier_in_use() == tier);
  }
  CHECK_THROWS_AS(use_tier("v5"), std::invalid_argument);
  CHECK_THROWS_AS(use_tier(""), std::invalid_argument);
  use_tier(name_of(before));
  CHECK(tier_in_use() == before);
}
