// The inverse Hessian B^-1 of limited-memory BFGS in a metric H (Nocedal and Wright 2006, algorithm
// 7.4): gamma H^-1, updated by the last `memory` pairs of a step s and the change y of the gradient
// along it, oldest pair first, so that B^-1 y = s holds for the newest pair. gamma is
// s^T y / y^T H^-1 y of the newest pair; 1 without pairs.
//
// The caller multiplies gradients by H^-1; H^-1 y is the difference of two such products. Vectors
// have m numbers in double. 3 m `memory` numbers are stored, and a direction takes about 10 m
// operations for each pair, on one thread. The order of summation is fixed.
#pragma once

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

class Lbfgs {
 public:
  using Point = VectorView<const double>;

  // Throws std::invalid_argument unless `size` and `memory` are positive.
  Lbfgs(index_t size, index_t memory);

  index_t size() const { return size_; }
  index_t pairs() const { return pairs_.size(); }
  double gamma() const { return gamma_; }

  struct Slopes {
    double slope = 0.0;         // g^T direction
    double squared_norm = 0.0;  // g^T H^-1 g
  };
  // out <- -B^-1 g, the direction of the next step, from g and solved = H^-1 g.
  Slopes direction(Point gradient, Point solved, VectorView<double> out);

  // Adds a pair from points, gradients and solved gradients before and after a step. The pair is
  // dropped if rounding makes s^T y or y^T H^-1 y negative, or their ratio is not finite.
  void remember(Point from, Point to, Point gradient_before, Point gradient_after,
                Point solved_before, Point solved_after);

  void forget();

 private:
  struct Pair {
    Vector<double> step, change, solved;
    double curvature = 0.0;  // s^T y
  };
  void set_gamma();

  index_t size_, memory_;
  double gamma_ = 1.0;
  Vector<Pair> pairs_;  // oldest first
  Pair spare_;
  Vector<double> weights_, rest_;
};

}  // namespace eigenfeat
