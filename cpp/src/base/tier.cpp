#include "eigenfeat/tier.hpp"

#include <algorithm>
#include <cstdlib>

#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/family.hpp"

namespace eigenfeat {
namespace {

bool machine_has(Tier tier) {
  if (tier == Tier::baseline) return true;
#ifdef EIGENFEAT_TIERS
  // By their features, as older compilers do not know the levels' names. The operating system's
  // part is asked for, too.
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (tier == Tier::v3) return v3;
  return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

std::string listed(const Vector<Tier>& tiers) {
  std::string text;
  for (const Tier tier : tiers)
    text += (text.empty() ? "'" : ", '") + std::string(name_of(tier)) + "'";
  return text;
}

}  // namespace

const char* name_of(Tier tier) {
  return tier == Tier::v4 ? "v4" : tier == Tier::v3 ? "v3" : "baseline";
}

Vector<std::string> names_of(const Vector<Tier>& tiers) {
  Vector<std::string> names;
  for (const Tier tier : tiers) names.push_back(name_of(tier));
  return names;
}

Vector<Tier> available_tiers() {
  Vector<Tier> tiers{Tier::baseline};
  for (const Tier tier : {Tier::v3, Tier::v4}) {
    if (machine_has(tier)) tiers.push_back(tier);
  }
  return tiers;
}

Tier active_tier = available_tiers().back();

Tier tier_in_use() {
  return active_tier;
}

void use_tier(const std::string& name) {
  for (const Tier tier : {Tier::baseline, Tier::v3, Tier::v4}) {
    if (name != name_of(tier)) continue;
    require(machine_has(tier), "EIGENFEAT_CPU",
            "one of " + listed(available_tiers()) + ", which this machine and this build have",
            "'" + name + "'");
    active_tier = tier;
    return;
  }
  require(false, "EIGENFEAT_CPU", "'baseline', 'v3' or 'v4'", "'" + name + "'");
}

void use_tier_of_environment() {
  const char* name = std::getenv("EIGENFEAT_CPU");
  if (name != nullptr && *name != '\0') use_tier(name);
}

}  // namespace eigenfeat
