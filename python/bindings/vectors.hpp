// Converts Python lists to Vector<T> and back, as pybind11/stl.h does for std::vector.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "eigenfeat/vector.hpp"

template <class T>
struct pybind11::detail::type_caster<eigenfeat::Vector<T>>
    : pybind11::detail::list_caster<eigenfeat::Vector<T>, T> {};
