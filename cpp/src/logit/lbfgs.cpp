#include "eigenfeat/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/vectors.hpp"
#include "eigenfeat/status.hpp"

namespace eigenfeat {
namespace {

void put_difference(VectorView<const double> after, VectorView<const double> before,
                    Vector<double>& out) {
  out.resize(after.size);
  for (index_t i = 0; i < after.size; ++i) out[i] = after[i] - before[i];
}

}  // namespace

Lbfgs::Lbfgs(index_t size, index_t memory) : size_(size), memory_(memory) {
  require(size >= 1, "size", "a positive number", std::to_string(size));
  require(memory >= 1, "memory", "a positive number", std::to_string(memory));
  weights_.resize(memory);
  rest_.resize(size);
}

Lbfgs::Slopes Lbfgs::direction(Point gradient, Point solved, VectorView<double> out) {
  std::copy(gradient.data, gradient.data + size_, rest_.data());
  std::copy(solved.data, solved.data + size_, out.data);
  for (index_t i = pairs_.size() - 1; i >= 0; --i) {
    const Pair& pair = pairs_[i];
    weights_[i] = dot(pair.step.data(), rest_.data(), size_) / pair.curvature;
    add_multiple(-weights_[i], pair.change.data(), size_, rest_.data());
    add_multiple(-weights_[i], pair.solved.data(), size_, out.data);
  }
  for (index_t j = 0; j < size_; ++j) out[j] *= -gamma_;
  for (index_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = pairs_[i];
    const double along = dot(pair.change.data(), out.data, size_) / pair.curvature;
    add_multiple(-weights_[i] - along, pair.step.data(), size_, out.data);
  }
  return {dot(gradient.data, out.data, size_), dot(gradient.data, solved.data, size_)};
}

void Lbfgs::remember(Point from, Point to, Point gradient_before, Point gradient_after,
                     Point solved_before, Point solved_after) {
  put_difference(to, from, spare_.step);
  put_difference(gradient_after, gradient_before, spare_.change);
  put_difference(solved_after, solved_before, spare_.solved);
  spare_.curvature = dot(spare_.step.data(), spare_.change.data(), size_);
  const double length = dot(spare_.change.data(), spare_.solved.data(), size_);
  if (!(spare_.curvature > 0 && length > 0 && std::isfinite(spare_.curvature / length))) return;
  pairs_.push_back(std::move(spare_));
  spare_ = Pair{};
  if (pairs_.size() > memory_) {
    spare_ = std::move(pairs_.front());
    pairs_.erase(pairs_.begin(), pairs_.begin() + 1);
  }
  set_gamma();
}

void Lbfgs::forget() {
  pairs_.clear();
  set_gamma();
}

void Lbfgs::set_gamma() {
  gamma_ = 1.0;
  if (pairs_.empty()) return;
  const Pair& last = pairs_.back();
  gamma_ = last.curvature / dot(last.change.data(), last.solved.data(), size_);
}

}  // namespace eigenfeat
