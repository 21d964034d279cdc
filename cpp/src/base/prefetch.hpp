// Private to the core: a hint that a cache line will be read soon.
#pragma once

namespace eigenfeat {

inline void prefetch_line([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}

}  // namespace eigenfeat
