// Names of expansions in Python, and their values in the core.
#pragma once

#include <string>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/status.hpp"

namespace eigenfeat::bindings {

inline Wave parse_wave(const std::string& name) {
  if (name == "none") return Wave::none;
  if (name == "half_wave") return Wave::half_wave;
  if (name == "polynomial") return Wave::polynomial;
  require(name == "shifted", "wave", "none, half_wave, shifted or polynomial", name);
  return Wave::shifted;
}

}  // namespace eigenfeat::bindings
