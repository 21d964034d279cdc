// The inverse Hessian of limited-memory BFGS in a metric H (Nocedal and Wright 2006, algorithm 7.4):
// gamma H^-1, changed so that for each of the last `memory` pairs of a step s and a change y of the
// gradient B^-1 y = s. gamma = s^T y / y^T H^-1 y of the last pair; 1 without pairs.
//
// H itself is the caller's: vectors come with H^-1 of them, and H^-1 y is a difference of such. Vectors
// have m numbers in double; 3 m memory numbers are stored, and a direction takes some 10 m operations a
// pair, on one thread. Sums are added in a fixed order.
#pragma once

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

class Lbfgs {
 public:
  using Point = VectorView<const double>;

  // Throws std::invalid_argument unless both are positive.
  Lbfgs(index_t size, index_t memory);

  index_t size() const { return size_; }
  index_t pairs() const { return pairs_.size(); }
  double gamma() const { return gamma_; }

  struct Slopes {
    double decrease = 0.0;  // g^T direction
    double norm = 0.0;      // g^T H^-1 g
  };
  // out <- -B^-1 g, from g and solved = H^-1 g; beside the pairs, it is what a step goes along.
  Slopes direction(Point gradient, Point solved, VectorView<double> out);

  // What points, gradients and solved gradients say before and after a step; forgotten where rounding
  // has turned the sign of s^T y or y^T H^-1 y, or their ratio is not finite.
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
  Vector<Pair> pairs_;  // the oldest first
  Pair spare_;
  Vector<double> weights_, rest_;
};

}  // namespace eigenfeat
