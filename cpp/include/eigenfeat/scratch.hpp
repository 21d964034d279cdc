// Aligned scratch memory, allocated once and reused for every item.
//
// AlignedBuffer<T> owns n elements on a 64-byte boundary (one cache line, one AVX-512 register).
// Elements are not initialised unless zeroed memory is requested; the operating system zeroes pages
// at their first use, so that unused pages cost nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline constexpr std::size_t kAlignment = 64;

// Raw memory on a boundary of at least kAlignment; throws std::bad_alloc. Large blocks are mapped,
// zeroed by the operating system, in huge pages, which save most address translations of streaming
// kernels. Up to 64 MB of released blocks are kept for later requests; these blocks are zeroed only
// on request.
struct RawMemory {
  void* data = nullptr;
  std::size_t mapped = 0;  // bytes of the mapping; 0: allocated by malloc
};
RawMemory allocate_aligned(std::size_t bytes, bool zeroed);
void release_aligned(const RawMemory& memory) noexcept;

template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(index_t size) { reserve(size); }
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer(std::move(other)).swap(*this);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.size_) {
    if (size_ > 0) std::memcpy(data(), other.data(), sizeof(T) * static_cast<std::size_t>(size_));
  }
  AlignedBuffer& operator=(const AlignedBuffer& other) {
    AlignedBuffer(other).swap(*this);
    return *this;
  }
  ~AlignedBuffer() { release_aligned(memory_); }

  // Makes room for at least `size` elements. Growth discards the contents.
  void reserve(index_t size) {
    if (size > size_) allocate(size, false);
  }

  static AlignedBuffer zeros(index_t size) {
    AlignedBuffer buffer;
    if (size > 0) buffer.allocate(size, true);
    return buffer;
  }

  void swap(AlignedBuffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }

  T* data() { return static_cast<T*>(memory_.data); }
  const T* data() const { return static_cast<const T*>(memory_.data); }
  index_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](index_t i) { return data()[i]; }
  const T& operator[](index_t i) const { return data()[i]; }

 private:
  void allocate(index_t size, bool zeroed) {
    const RawMemory fresh = allocate_aligned(sizeof(T) * static_cast<std::size_t>(size), zeroed);
    release_aligned(memory_);
    memory_ = fresh;
    size_ = size;
  }

  RawMemory memory_;
  index_t size_ = 0;
};

// One buffer for each thread of a parallel region, grown at its first use.
template <class T>
class PerThread {
 public:
  explicit PerThread(int n_threads) : slots_(std::max(n_threads, 1)) {}
  T& operator[](int thread) { return slots_[thread]; }

 private:
  Vector<T> slots_;
};

}  // namespace eigenfeat
