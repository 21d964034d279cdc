// The Python module of the compiled core: private, used through the facade in python/eigenfeat/.
#include <pybind11/pybind11.h>

#include <stdexcept>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/tier.hpp"
#include "registrars.hpp"
#include "vectors.hpp"

// CMake defines EIGENFEAT_LAPACK_NAME, the name of the LAPACK that the core is linked with.

namespace {

unsigned long main_thread = 0;

// Raises KeyboardInterrupt if Ctrl-C is pressed while the core works without Python's lock. Handlers
// other than Python's default run after the call, since they could see objects that are half changed.
void raise_interrupt() {
  namespace py = pybind11;
  if (PyThread_get_thread_ident() != main_thread) return;
  const py::gil_scoped_acquire locked;
  const py::module_ signal = py::module_::import("signal");
  if (!signal.attr("getsignal")(signal.attr("SIGINT")).is(signal.attr("default_int_handler")))
    return;
  if (PyOS_InterruptOccurred() == 0) return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw py::error_already_set();
}

void watch_for_interrupts() {
  namespace py = pybind11;
  main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  const py::module_ os = py::module_::import("os");
  if (py::hasattr(os, "register_at_fork")) {
    // In a child process, the thread that called fork is the main thread.
    os.attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function(
                                    [] { main_thread = PyThread_get_thread_ident(); }));
  }
  eigenfeat::set_interrupt_check(raise_interrupt);
}

}  // namespace

// The module does not need Python's global lock, which the core releases in all long calls anyway. Of
// the objects that change, the facade guards ClassMoments by a lock, and it never shares CrammerSinger
// and LayerTraining between threads.
PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "Compiled core of eigenfeat; use the package's public names instead.";

  eigenfeat::pin_blas();
  try {
    eigenfeat::use_tier_of_environment();
  } catch (const std::invalid_argument& error) {
    throw pybind11::import_error(error.what());
  }
  watch_for_interrupts();

  eigenfeat::bindings::register_moments(module);
  eigenfeat::bindings::register_pencil(module);
  eigenfeat::bindings::register_expansion(module);
  eigenfeat::bindings::register_logit(module);
  eigenfeat::bindings::register_lbfgs(module);
  eigenfeat::bindings::register_layer_training(module);
  eigenfeat::bindings::register_local_means(module);
  eigenfeat::bindings::register_prefix_gaussian(module);
  eigenfeat::bindings::register_trust_region(module);
  eigenfeat::bindings::register_dominance(module);
  eigenfeat::bindings::register_local_affinity(module);
  eigenfeat::bindings::register_crammer_singer(module);
  eigenfeat::bindings::register_hinge_envelope(module);
  eigenfeat::bindings::register_sparse_rows(module);
  eigenfeat::bindings::register_tangent_space(module);
  eigenfeat::bindings::register_convolutions(module);
  eigenfeat::bindings::register_column_features(module);

  module.def("default_threads", &eigenfeat::default_threads);
  module.def("blas_threads", &eigenfeat::blas_threads);
  module.def("tier", [] { return eigenfeat::name_of(eigenfeat::tier_in_use()); });
  module.def("available_tiers", [] { return eigenfeat::names_of(eigenfeat::available_tiers()); });
  module.def("lapack_name", [] { return EIGENFEAT_LAPACK_NAME; });
}
