// Lists in and out as Vector<T>, the way pybind11/stl.h has them as std::vector.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "eigenfeat/vector.hpp"

template <class T>
struct pybind11::detail::type_caster<eigenfeat::Vector<T>>
    : pybind11::detail::list_caster<eigenfeat::Vector<T>, T> {};
