// A function for each file bind_*.cpp, which adds the classes and functions of the file.
#pragma once

#include <pybind11/pybind11.h>

namespace eigenfeat::bindings {

void register_moments(pybind11::module_& module);
void register_pencil(pybind11::module_& module);
void register_expansion(pybind11::module_& module);
void register_logit(pybind11::module_& module);
void register_lbfgs(pybind11::module_& module);
void register_layer_training(pybind11::module_& module);
void register_local_means(pybind11::module_& module);
void register_prefix_gaussian(pybind11::module_& module);
void register_trust_region(pybind11::module_& module);
void register_dominance(pybind11::module_& module);
void register_local_affinity(pybind11::module_& module);
void register_crammer_singer(pybind11::module_& module);
void register_hinge_envelope(pybind11::module_& module);
void register_sparse_rows(pybind11::module_& module);
void register_tangent_space(pybind11::module_& module);
void register_convolutions(pybind11::module_& module);
void register_column_features(pybind11::module_& module);

}  // namespace eigenfeat::bindings
