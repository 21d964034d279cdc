// The compiled core as Python sees it: private, used through the facade in python/eigenfeat/.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/tier.hpp"
#include "registrars.hpp"

// EIGENFEAT_LAPACK_NAME comes from CMake: which LAPACK the core is linked with.

PYBIND11_MODULE(_core, module) {
  module.doc() = "Compiled core of eigenfeat; use the package's public names instead.";

  eigenfeat::pin_blas();
  try {
    eigenfeat::use_tier_of_environment();
  } catch (const std::invalid_argument& error) {
    throw pybind11::import_error(error.what());
  }

  eigenfeat::bindings::register_moments(module);
  eigenfeat::bindings::register_pencil(module);
  eigenfeat::bindings::register_expansion(module);
  eigenfeat::bindings::register_logit(module);
  eigenfeat::bindings::register_local_means(module);
  eigenfeat::bindings::register_prefix_gaussian(module);
  eigenfeat::bindings::register_trust_region(module);
  eigenfeat::bindings::register_box(module);
  eigenfeat::bindings::register_dominance(module);
  eigenfeat::bindings::register_local_affinity(module);
  eigenfeat::bindings::register_crammer_singer(module);
  eigenfeat::bindings::register_sparse_rows(module);

  module.def("default_threads", &eigenfeat::default_threads);
  module.def("blas_threads", &eigenfeat::blas_threads);
  module.def("tier", [] { return eigenfeat::name_of(eigenfeat::tier_in_use()); });
  module.def("available_tiers", [] { return eigenfeat::names_of(eigenfeat::available_tiers()); });
  module.def("lapack_name", [] { return EIGENFEAT_LAPACK_NAME; });
}
