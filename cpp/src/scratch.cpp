#include "eigenfeat/scratch.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace eigenfeat {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr std::size_t kLarge = 2 * kHugePage;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

#ifdef __linux__
// A private mapping whose size is a multiple of a huge page. The kernel aligns such mappings where
// it can.
RawMemory map_huge(std::size_t bytes) {
  const std::size_t size = rounded(bytes, kHugePage);
  if (size < bytes) throw std::bad_alloc();
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, size, MADV_HUGEPAGE);  // only advice: a refusal changes nothing but speed
  return {data, size};
}
#endif

}  // namespace

RawMemory allocate_aligned(std::size_t bytes, bool zeroed) {
#ifdef __linux__
  if (bytes >= kLarge) return map_huge(bytes);
#endif
  const std::size_t size = rounded(bytes, kAlignment);
  if (size < bytes) throw std::bad_alloc();
  void* data = std::aligned_alloc(kAlignment, size);
  if (data == nullptr) throw std::bad_alloc();
  if (zeroed) std::memset(data, 0, size);
  return {data, 0};
}

void release_aligned(const RawMemory& memory) noexcept {
#ifdef __linux__
  if (memory.mapped > 0) {
    munmap(memory.data, memory.mapped);
    return;
  }
#endif
  std::free(memory.data);
}

}  // namespace eigenfeat
