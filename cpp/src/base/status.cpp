#include "eigenfeat/status.hpp"

namespace eigenfeat {

const char* describe(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::not_positive_definite:
      return "the denominator is not positive definite to working precision";
    case Status::not_converged:
      return "the eigensolver did not converge";
    case Status::inaccurate:
      return "a residual exceeds the tolerance";
  }
  return "unknown status";
}

}  // namespace eigenfeat
