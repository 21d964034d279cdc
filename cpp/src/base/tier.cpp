#include "eigenfeat/tier.hpp"

#include <algorithm>
#include <cstdlib>

#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/family.hpp"

#ifdef EIGENFEAT_TIERS
#include <cpuid.h>
#endif

namespace eigenfeat {
namespace {

#ifdef EIGENFEAT_TIERS
// Instruction sets of the processor whose registers the operating system saves (Intel's manual,
// volume 1, 13.2 and 14.3). clang-cl does not link the tables of __builtin_cpu_supports.
struct Processor {
  bool v3 = false;
  bool v4 = false;

  Processor() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return;
    constexpr unsigned fma = 1U << 12, saves = 1U << 27, avx = 1U << 28;
    if ((c & fma) == 0 || (c & saves) == 0 || (c & avx) == 0) return;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return;
    unsigned low = 0, high = 0;  // NOLINT(misc-const-correctness): the instruction writes them
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr unsigned bmi = 1U << 3, avx2 = 1U << 5, bmi2 = 1U << 8;
    constexpr unsigned f = 1U << 16, dq = 1U << 17, cd = 1U << 28, bw = 1U << 30, vl = 1U << 31;
    constexpr unsigned of_v3 = bmi | avx2 | bmi2, of_v4 = f | dq | cd | bw | vl;
    constexpr unsigned wide = 0x6, widest = 0xe6;  // registers of 256 and of 512 bits, and masks
    v3 = (b & of_v3) == of_v3 && (low & wide) == wide;
    v4 = v3 && (b & of_v4) == of_v4 && (low & widest) == widest;
  }
};
#endif

bool machine_has(Tier tier) {
  if (tier == Tier::baseline) return true;
#ifdef EIGENFEAT_TIERS
  static const Processor processor;
  return tier == Tier::v3 ? processor.v3 : processor.v4;
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
