#include "eigenfeat/scratch.hpp"

#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace eigenfeat {
namespace {

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

#ifdef __linux__
constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr std::size_t kLarge = 2 * kHugePage;  // larger requests are mapped in huge pages

// A private mapping whose size is a multiple of a huge page. The kernel aligns such mappings where
// it can.
RawMemory map_huge(std::size_t bytes) {
  const std::size_t size = rounded(bytes, kHugePage);
  if (size < bytes) throw std::bad_alloc();
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, size, MADV_HUGEPAGE);  // only affects the speed
  return {data, size};
}

// Released mappings for later requests: the operating system clears new pages, which takes as long
// as a pass over them. While another thread holds the lock, requests map new memory instead.
class Spares {
 public:
  RawMemory take(std::size_t bytes) noexcept {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return {};
    RawMemory* best = nullptr;
    for (RawMemory& spare : spares_) {
      const bool fits = spare.mapped >= bytes && spare.mapped / 2 <= bytes;
      if (fits && (best == nullptr || spare.mapped < best->mapped)) best = &spare;
    }
    if (best == nullptr) return {};
    kept_ -= best->mapped;
    return std::exchange(*best, {});
  }

  // Returns whether the mapping was kept; older mappings may be released for it.
  bool keep(const RawMemory& memory) noexcept {
    if (memory.mapped > kMaxKept) return false;
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    for (; kept_ + memory.mapped > kMaxKept; advance()) drop(spares_[next_]);
    for (std::size_t n = 1; n < spares_.size() && spares_[next_].mapped > 0; ++n) advance();
    drop(spares_[next_]);
    kept_ += memory.mapped;
    spares_[next_] = memory;
    advance();
    return true;
  }

 private:
  static constexpr std::size_t kMaxKept = std::size_t{1} << 26;  // total bytes of kept mappings

  void advance() noexcept { next_ = (next_ + 1) % spares_.size(); }
  void drop(RawMemory& spare) noexcept {
    if (spare.mapped == 0) return;
    munmap(spare.data, spare.mapped);
    kept_ -= spare.mapped;
    spare = {};
  }

  std::mutex mutex_;
  std::array<RawMemory, 4> spares_{};
  std::size_t next_ = 0;  // index after the mapping that was kept last
  std::size_t kept_ = 0;
};

// Never destroyed, because static buffers may be released after static destructors have run.
Spares& spares() {
  static Spares* const all = new Spares;
  return *all;
}
#endif

}  // namespace

RawMemory allocate_aligned(std::size_t bytes, bool zeroed) {
#ifdef __linux__
  if (bytes >= kLarge) {
    const RawMemory spare = zeroed ? RawMemory{} : spares().take(bytes);
    return spare.mapped > 0 ? spare : map_huge(bytes);
  }
#endif
  const std::size_t size = rounded(bytes, kAlignment);
  if (size < bytes) throw std::bad_alloc();
  // Windows has no std::aligned_alloc.
  void* data = ::operator new(size, std::align_val_t{kAlignment});
  if (zeroed) std::memset(data, 0, size);
  return {data, 0};
}

void release_aligned(const RawMemory& memory) noexcept {
#ifdef __linux__
  if (memory.mapped > 0) {
    if (!spares().keep(memory)) munmap(memory.data, memory.mapped);
    return;
  }
#endif
  ::operator delete(memory.data, std::align_val_t{kAlignment});
}

}  // namespace eigenfeat
