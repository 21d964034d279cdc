#include "eigenfeat/hinge_envelope.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kBlock = 64;  // rows of a task
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

void check(const HingeRows& rows, const HingeOptions& options, MatrixView<double> a,
           VectorView<double> values, VectorView<double> gaps) {
  const index_t n = rows.scores.rows, k = rows.scores.cols;
  require(k >= 2, "scores", "at least 2 columns", std::to_string(k));
  require(rows.gram.rows == k && rows.gram.cols == k, "gram",
          std::to_string(k) + " rows and columns",
          std::to_string(rows.gram.rows) + " x " + std::to_string(rows.gram.cols));
  require(rows.labels.size == n, "labels", std::to_string(n) + " entries",
          std::to_string(rows.labels.size));
  require(rows.costs.size == n, "costs", std::to_string(n) + " entries",
          std::to_string(rows.costs.size));
  require(a.rows == n && a.cols == k && values.size == n && gaps.size == n, "a",
          "as many entries as scores", std::to_string(a.rows) + " x " + std::to_string(a.cols));
  require(rows.margin > 0.0 && std::isfinite(rows.margin), "margin", "a positive number",
          std::to_string(rows.margin));
  require(rows.variance >= 0.0 && std::isfinite(rows.variance), "variance", "a number >= 0",
          std::to_string(rows.variance));
  require(options.tolerance > 0.0, "tolerance", "a positive number",
          std::to_string(options.tolerance));
  for (index_t i = 0; i < n; ++i) {
    if (!(rows.labels[i] >= 0 && rows.labels[i] < k))
      refuse("labels", "indices below " + std::to_string(k), std::to_string(rows.labels[i]));
    if (!(rows.costs[i] > 0.0 && std::isfinite(rows.costs[i])))
      refuse("costs", "positive numbers", std::to_string(rows.costs[i]));
  }
}

// Processes one row at a time, in common scratch memory. u = b - C e_own is zero for a row that
// does not move, so that C - b^own keeps its digits for rows that move little.
class RowProgram {
 public:
  RowProgram(const HingeRows& rows, const HingeOptions& options)
      : rows_(rows),
        options_(options),
        k_(rows.scores.cols),
        inside_(k_),
        s_(k_),
        d_(k_),
        u_(k_),
        step_(k_),
        factor_(k_ * k_) {}

  void solve(index_t i, double* a, double& value, double& gap) {
    own_ = rows_.labels[i];
    cost_ = rows_.costs[i];
    for (index_t y = 0; y < k_; ++y) {
      s_[y] = y == own_ ? 0.0 : rows_.margin + rows_.scores(i, y) - rows_.scores(i, own_);
    }
    begin(a);
    double before = std::numeric_limits<double>::infinity();
    for (index_t step = 0; step < options_.max_steps; ++step) {
      if (!stationary()) continue;
      const index_t best = std::max_element(d_.begin(), d_.end()) - d_.begin();
      const double now = gap_from(best);
      // If the best class is in the set, the gap is a rounding error, which another step may halve.
      if (now <= enough() || (inside_[best] != 0 && !(now < 0.5 * before))) break;
      inside_[best] = 1;
      before = now;
    }
    refresh();
    gap = std::max(gap_from(std::max_element(d_.begin(), d_.end()) - d_.begin()), 0.0);
    value = 0.0;
    for (index_t y = 0; y < k_; ++y) {
      value += s_[y] * u_[y] - 0.5 * u_[y] * (s_[y] - d_[y]);
      a[y] = -u_[y];
    }
  }

 private:
  double weight(index_t y) const { return y == own_ ? cost_ + u_[y] : u_[y]; }

  // An infeasible start is replaced by u = 0, a row that does not move.
  void begin(const double* a) {
    double sum = 0.0;
    bool feasible = true;
    for (index_t y = 0; y < k_; ++y) {
      if (y == own_) continue;
      u_[y] = -a[y];
      feasible = feasible && u_[y] >= 0.0;
      sum += u_[y];
    }
    if (!feasible || !(sum <= cost_ * (1.0 + 1e-9))) {
      std::fill(u_.begin(), u_.end(), 0.0);
      sum = 0.0;
    }
    u_[own_] = -std::min(sum, cost_);
    for (index_t y = 0; y < k_; ++y) inside_[y] = weight(y) > 0.0 ? 1 : 0;
    refresh();
  }

  void refresh() {
    size_ = rows_.margin;
    for (index_t y = 0; y < k_; ++y) {
      double product = 0.0, absolute = 0.0;
      for (index_t z = 0; z < k_; ++z) {
        product += rows_.gram(y, z) * u_[z];
        absolute += std::abs(rows_.gram(y, z) * u_[z]);
      }
      d_[y] = s_[y] - rows_.variance * product;
      size_ = std::max(size_, std::abs(s_[y]) + rows_.variance * absolute);
    }
  }

  double enough() const {
    return cost_ * std::max(options_.tolerance * rows_.margin, 16.0 * kEpsilon * size_);
  }

  double gap_from(index_t best) const {
    double sum = 0.0;
    for (index_t y = 0; y < k_; ++y) sum += weight(y) * (d_[best] - d_[y]);
    return sum;
  }

  double curvature(index_t y, index_t z, index_t pivot) const {
    return rows_.variance * (rows_.gram(y, z) - rows_.gram(y, pivot) - rows_.gram(pivot, z) +
                             rows_.gram(pivot, pivot));
  }

  // A Newton step within the classes of the set; returns false if a class has left the set.
  bool stationary() {
    members_.clear();
    index_t pivot = -1;
    for (index_t y = 0; y < k_; ++y) {
      if (inside_[y] == 0) continue;
      if (pivot < 0 || weight(y) > weight(pivot)) pivot = y;
    }
    for (index_t y = 0; y < k_; ++y) {
      if (inside_[y] != 0 && y != pivot) members_.push_back(y);
    }
    if (members_.empty()) return true;
    newton(pivot);
    double length = 1.0, total = 0.0;
    index_t leaving = -1;
    const auto meet = [&](index_t y, double change) {
      if (change < 0.0 && weight(y) < -change * length) {
        length = std::max(weight(y), 0.0) / -change;
        leaving = y;
      }
    };
    for (index_t m = 0; m < members_.size(); ++m) {
      meet(members_[m], step_[m]);
      total += step_[m];
    }
    meet(pivot, -total);
    for (index_t m = 0; m < members_.size(); ++m) u_[members_[m]] += length * step_[m];
    u_[pivot] -= length * total;
    if (leaving >= 0) {
      inside_[leaving] = 0;
      u_[leaving] = leaving == own_ ? -cost_ : 0.0;
    }
    settle(pivot, leaving);
    refresh();
    return leaving < 0;
  }

  // Makes u sum to 0 in spite of rounding; only the entry of the own class is negative.
  void settle(index_t pivot, index_t leaving) {
    for (index_t y = 0; y < k_; ++y) {
      if (y != own_) u_[y] = std::max(u_[y], 0.0);
    }
    const index_t free = inside_[own_] != 0 ? own_ : (pivot == leaving ? last_inside() : pivot);
    double sum = 0.0;
    for (index_t y = 0; y < k_; ++y) {
      if (y != free) sum += u_[y];
    }
    u_[free] = free == own_ ? std::max(-sum, -cost_) : std::max(-sum, 0.0);
  }

  index_t last_inside() const {
    index_t found = own_;
    for (index_t y = 0; y < k_; ++y) {
      if (inside_[y] != 0) found = y;
    }
    return found;
  }

  // step <- solution of H step = g in the differences from the pivot, by a Cholesky factor. If a
  // class is affinely dependent on earlier classes, the objective is linear along their
  // combination; the step then increases it further than all weights allow, so that a class leaves
  // the set.
  void newton(index_t pivot) {
    const index_t m = members_.size();
    double largest = 0.0;
    for (index_t i = 0; i < m; ++i) {
      const index_t y = members_[i];
      largest = std::max(largest, rows_.gram(y, y) + rows_.gram(pivot, pivot));
    }
    const double least = 64.0 * kEpsilon * rows_.variance * largest;
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        double sum = curvature(members_[i], members_[j], pivot);
        for (index_t l = 0; l < j; ++l) sum -= factor_[i * k_ + l] * factor_[j * k_ + l];
        if (i == j && !(sum > least)) {
          along_null(i, pivot);
          return;
        }
        factor_[i * k_ + j] = i == j ? std::sqrt(sum) : sum / factor_[j * k_ + j];
      }
      double right = d_[members_[i]] - d_[pivot];
      for (index_t l = 0; l < i; ++l) right -= factor_[i * k_ + l] * step_[l];
      step_[i] = right / factor_[i * k_ + i];
    }
    solve_transposed(m);
  }

  // Solves with the transposed factor for the first n entries of step, in place.
  void solve_transposed(index_t n) {
    for (index_t i = n - 1; i >= 0; --i) {
      for (index_t l = i + 1; l < n; ++l) step_[i] -= factor_[l * k_ + i] * step_[l];
      step_[i] /= factor_[i * k_ + i];
    }
  }

  void along_null(index_t last, index_t pivot) {
    for (index_t i = 0; i < last; ++i) step_[i] = -factor_[last * k_ + i];
    solve_transposed(last);
    step_[last] = 1.0;
    for (index_t i = last + 1; i < members_.size(); ++i) step_[i] = 0.0;
    double gain = 0.0, total = 0.0, largest = 0.0;
    for (index_t i = 0; i <= last; ++i) {
      gain += (d_[members_[i]] - d_[pivot]) * step_[i];
      total += step_[i];
      largest = std::max(largest, std::abs(step_[i]));
    }
    const double far = (gain < 0.0 ? -4.0 : 4.0) * cost_ / std::max(largest, std::abs(total));
    for (index_t i = 0; i <= last; ++i) step_[i] *= far;
  }

  const HingeRows& rows_;
  const HingeOptions& options_;
  index_t k_, own_ = 0;
  double cost_ = 0.0, size_ = 0.0;
  Vector<char> inside_;
  Vector<index_t> members_;
  Vector<double> s_, d_, u_, step_, factor_;
};

}  // namespace

void hinge_envelope(const HingeRows& rows, const HingeOptions& options, MatrixView<double> a,
                    VectorView<double> values, VectorView<double> gaps, int n_threads) {
  check(rows, options, a, values, gaps);
  const index_t n = rows.scores.rows, k = rows.scores.cols;
  const double work = 100.0 * static_cast<double>(n) * static_cast<double>(k);
  for_ranges(n, kBlock, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    RowProgram program(rows, options);
    for (index_t i = begin; i < end; ++i) program.solve(i, a.row(i), values[i], gaps[i]);
  });
}

}  // namespace eigenfeat
