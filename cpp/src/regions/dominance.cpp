#include "eigenfeat/dominance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/trust_region.hpp"
#include "kernels/region_kernels.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {
namespace {

double total(const double* x, index_t n) {
  double sum = 0.0;
  for (index_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

struct DominanceScratch {
  AlignedBuffer<double> lines, values, magnitudes;
};

// One row of a problem.
class Row {
 public:
  Row(const DominanceProblem& problem, index_t row, DominanceScratch& scratch)
      : p_(problem), row_(row), d_(problem.points.cols), k_(problem.offsets.cols), s_(scratch) {
    s_.lines.reserve(6 * d_);
    s_.values.reserve(k_);
    s_.magnitudes.reserve(k_);
    for (index_t c = 0; c < k_; ++c) evaluate(c);
  }

  index_t guess() const {
    return std::max_element(s_.values.data(), s_.values.data() + k_) - s_.values.data();
  }

  // The class with the smallest difference at the point; -1 if there is no other class.
  index_t runner_up(index_t c) const {
    index_t best = -1;
    for (index_t h = 0; h < k_; ++h) {
      if (h != c && (best < 0 || s_.values[h] > s_.values[best])) best = h;
    }
    return best;
  }

  // The difference of classes c and h, set by form().
  Verdict judge(index_t c, index_t h, double constant, double radius) {
    const double error = uncertainty(c, h) + curved_ * radius * radius + sloped_ * radius;
    if (p_.shape == SetShape::ball)
      return certify(line(0), line(1), d_, constant, radius, error, line(4)).verdict;
    const double fall = kernels<RegionKernels>().box_fall(line(0), line(1), radius, d_);
    return settle(c, h, constant - fall, error + share() * fall);
  }

  void form(index_t c, index_t h) {
    const double *x = p_.points.row(row_), *w = p_.widths.row(row_);
    if (p_.precisions.data != nullptr) {
      const double *precisions = p_.precisions.row(row_), *centres = p_.centres.row(row_);
      kernels<RegionKernels>().quadratic_difference(
          {precisions + c * d_, centres + c * d_, precisions + h * d_, centres + h * d_}, x, w, d_,
          line(0), line(1), line(2), line(3));
    } else {
      std::fill(line(0), line(4), 0.0);
    }
    if (p_.slopes.data != nullptr)
      kernels<RegionKernels>().add_linear_difference(p_.slopes.row(c), p_.slopes.row(h), w, d_,
                                                     line(1), line(3));
    // Both sums bound the effect of rounding errors of the entries, in the ball and in the box.
    curved_ = 8 * kRound * total(line(2), d_);
    sloped_ = 16 * kRound * total(line(3), d_);
  }

  double largest_radius(double limit) {
    const index_t c = guess();
    double radius = limit;
    const auto shrink = [&](index_t h) {
      const double constant = s_.values[c] - s_.values[h];
      if (settle(c, h, constant, 0.0) != Verdict::nonnegative) {
        radius = 0.0;
        return;
      }
      form(c, h);
      const auto holds = [&](double r) { return judge(c, h, constant, r) == Verdict::nonnegative; };
      if (!holds(radius)) radius = bisect(radius, holds);
    };
    const index_t first = runner_up(c);
    if (first >= 0) shrink(first);
    for (index_t h = 0; h < k_ && radius > 0.0; ++h) {
      if (h != first && h != c) shrink(h);
    }
    return radius;
  }

 private:
  double* line(index_t i) { return s_.lines.data() + i * d_; }
  double share() const { return static_cast<double>(d_ + 64) * kRound; }

  void evaluate(index_t c) {
    const double* x = p_.points.row(row_);
    const double offset = p_.offsets(p_.offsets.rows == 1 ? 0 : row_, c);
    SumAndSize sum{offset, std::fabs(offset) + kUnderflowAllowance};
    if (p_.precisions.data != nullptr) {
      const double square = kernels<RegionKernels>().weighted_square(
          p_.precisions.row(row_) + c * d_, x, p_.centres.row(row_) + c * d_, d_);
      sum = {sum.value - square, sum.magnitude + square};
    }
    if (p_.slopes.data != nullptr) {
      const SumAndSize linear = kernels<RegionKernels>().dot_and_size(p_.slopes.row(c), x, d_);
      sum = {sum.value + linear.value, sum.magnitude + linear.magnitude};
    }
    s_.values[c] = sum.value;
    s_.magnitudes[c] = sum.magnitude;
  }

  double uncertainty(index_t c, index_t h) const {
    return share() * (s_.magnitudes[c] + s_.magnitudes[h]);
  }

  Verdict settle(index_t c, index_t h, double least, double error) const {
    const double reach = error + uncertainty(c, h);
    if (!(reach <= std::numeric_limits<double>::max())) return Verdict::undecided;
    if (least >= reach) return Verdict::nonnegative;
    return least < -reach ? Verdict::negative : Verdict::undecided;
  }

  template <class Holds>
  static double bisect(double above, Holds&& holds) {
    double below = 0.0;
    const double least = above * 1e-12;  // smaller radii count as 0
    for (double r = above; below == 0.0; r *= 1.0 / 64) {
      if (!(r >= least)) return 0.0;
      (holds(r) ? below : above) = r;
    }
    while (above - below > 1e-6 * below) {  // to a relative error of 1e-6
      const double middle = 0.5 * (below + above);
      (holds(middle) ? below : above) = middle;
    }
    return below;
  }

  const DominanceProblem& p_;
  index_t row_, d_, k_;
  DominanceScratch& s_;
  double curved_ = 0.0, sloped_ = 0.0;
};

void check_shapes(const DominanceProblem& p) {
  const index_t n = p.points.rows, d = p.points.cols, k = p.offsets.cols;
  const auto lines = [&](MatrixView<const double> m, index_t cols, const char* name) {
    require(m.rows == n && m.cols == cols && m.is_row_major(), name,
            std::to_string(n) + " rows of " + std::to_string(cols),
            std::to_string(m.rows) + " of " + std::to_string(m.cols));
  };
  require(k > 0, "offsets", "at least one class", "none");
  lines(p.points, d, "points");
  lines(p.widths, d, "widths");
  require(p.offsets.rows == n || p.offsets.rows == 1, "offsets",
          "one row, or one row for each point", std::to_string(p.offsets.rows));
  require(p.radii.size == n, "radii", std::to_string(n) + " entries", std::to_string(p.radii.size));
  require((p.precisions.data == nullptr) == (p.centres.data == nullptr), "centres",
          "both precisions and centres, or neither", "one");
  if (p.precisions.data != nullptr) {
    lines(p.precisions, k * d, "precisions");
    lines(p.centres, k * d, "centres");
  }
  require(p.slopes.data == nullptr ||
              (p.slopes.rows == k && p.slopes.cols == d && p.slopes.is_row_major()),
          "slopes", "one row for each class", std::to_string(p.slopes.rows));
}

double work_of(const DominanceProblem& p) {
  return 40.0 * static_cast<double>(p.points.rows) * static_cast<double>(p.points.cols + 16) *
         static_cast<double>(p.offsets.cols);
}

constexpr index_t kRowsAtOnce = 32;  // points of a task

}  // namespace

void dominance_radii(const DominanceProblem& problem, VectorView<double> largest, int n_threads) {
  check_shapes(problem);
  const index_t n = problem.points.rows;
  require(largest.size == n, "largest", std::to_string(n) + " entries",
          std::to_string(largest.size));
  const int threads = threads_for(20.0 * work_of(problem), n_threads);
  PerThread<DominanceScratch> scratch(threads);
  for_ranges(n, kRowsAtOnce, threads, [&](index_t begin, index_t end, int thread) {
    for (index_t i = begin; i < end; ++i)
      largest[i] = Row(problem, i, scratch[thread]).largest_radius(problem.radii[i]);
  });
}

}  // namespace eigenfeat
