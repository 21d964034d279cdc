// Quadratics that share matrices, each over several balls: see trust_region.hpp.
#include <cmath>
#include <string>

#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/trust_region.hpp"
#include "regions/ball_bounds.hpp"
#include "regions/eigenbasis.hpp"

namespace eigenfeat {
namespace {

struct LevelScratch {
  Vector<index_t> varying;  // entries with w > 0
  AlignedBuffer<double> curvature, slopes, line;
};

void check(const SharedQuadratics& problem) {
  const index_t n = problem.slopes.rows, d = problem.slopes.cols, m = problem.groups.rows;
  const auto expect = [](bool good, const char* name, const char* what) {
    require(good, name, what, "another shape or other numbers");
  };
  expect(d > 0 && problem.forms.cols == d && problem.forms.rows % d == 0, "forms", "(p, d, d)");
  expect(problem.widths.cols == d, "widths", "(q, d)");
  expect(problem.groups.cols == 2, "groups", "(m, 2)");
  expect(problem.begins.size == m + 1 && problem.begins[0] == 0 && problem.begins[m] == n, "begins",
         "m + 1 numbers from 0 to n");
  expect(problem.constants.rows == n, "constants", "(n, t)");
  expect(problem.radii.rows == n && problem.radii.cols == problem.constants.cols, "radii",
         "(n, t)");
  expect(problem.limits.size == n, "limits", "(n,)");
  for (index_t group = 0; group < m; ++group) {
    expect(problem.begins[group] <= problem.begins[group + 1], "begins", "ascending numbers");
    const index_t form = problem.groups(group, 0), widths = problem.groups(group, 1);
    expect(
        form >= 0 && form < problem.forms.rows / d && widths >= 0 && widths < problem.widths.rows,
        "groups", "indices of forms and widths");
  }
  for (index_t i = 0; i < n; ++i) {
    expect(problem.limits[i] >= 0 && problem.limits[i] <= problem.radii.cols, "limits",
           "numbers of levels");
  }
}

// One group: its matrix on the varying entries, and the slopes of its items there.
class Group {
 public:
  Group(const SharedQuadratics& problem, index_t group, LevelScratch& scratch)
      : problem_(problem),
        scratch_(scratch),
        begin_(problem.begins[group]),
        end_(problem.begins[group + 1]) {
    const index_t d = problem.slopes.cols;
    const MatrixView<const double> form =
        problem.forms.block(problem.groups(group, 0) * d, 0, d, d);
    const double* width = problem.widths.row(problem.groups(group, 1));
    scratch.varying.clear();
    for (index_t j = 0; j < d; ++j) {
      if (width[j] > 0.0) scratch.varying.push_back(j);
    }
    size_ = static_cast<index_t>(scratch.varying.size());
    const index_t items = end_ - begin_;
    scratch.curvature.reserve(size_ * size_);
    scratch.slopes.reserve(items * size_);
    scratch.line.reserve(2 * size_);
    for (index_t a = 0; a < size_; ++a) {
      const index_t i = scratch.varying[a];
      for (index_t b = 0; b < size_; ++b) {
        const index_t j = scratch.varying[b];
        scratch.curvature[a * size_ + b] = 0.5 * (form(i, j) + form(j, i)) * (width[i] * width[j]);
      }
    }
    for (index_t item = 0; item < items; ++item) {
      const double* g = problem.slopes.row(begin_ + item);
      for (index_t a = 0; a < size_; ++a) {
        scratch.slopes[item * size_ + a] = g[scratch.varying[a]] * width[scratch.varying[a]];
      }
    }
  }

  void run(VectorView<int> levels) {
    if (size_ == 0) {
      for (index_t i = begin_; i < end_; ++i) {
        bisect(i, levels, [&](double constant, double) {
          return constant >= 0.0 ? Verdict::nonnegative : Verdict::negative;
        });
      }
      return;
    }
    Eigenbasis basis(row_major<const double>(scratch_.curvature.data(), size_, size_),
                     row_major<const double>(scratch_.slopes.data(), end_ - begin_, size_), 1);
    basis.measure();
    for (index_t i = begin_; i < end_; ++i) {
      const index_t item = i - begin_;
      const double length = length_above(scratch_.slopes.data() + item * size_, size_);
      bisect(i, levels, [&](double constant, double radius) {
        const double error = radius == 0.0 ? 0.0 : basis.error(length, radius);
        if (!basis.converged || !std::isfinite(error)) return Verdict::undecided;
        return certify(basis.values(), basis.slope(item), size_, constant, radius, error,
                       scratch_.line.data())
            .verdict;
      });
    }
  }

 private:
  template <class F>
  void bisect(index_t i, VectorView<int> levels, const F& verdict) const {
    index_t low = 0, high = problem_.limits[i];
    while (low < high) {
      const index_t middle = low + (high - low) / 2;
      const Verdict found = verdict(problem_.constants(i, middle), problem_.radii(i, middle));
      if (found == Verdict::nonnegative)
        low = middle + 1;
      else
        high = middle;
    }
    levels[i] = static_cast<int>(low);
  }

  const SharedQuadratics& problem_;
  LevelScratch& scratch_;
  index_t begin_, end_, size_ = 0;
};

}  // namespace

void proved_levels(const SharedQuadratics& problem, VectorView<int> levels, int n_threads) {
  check(problem);
  const index_t m = problem.groups.rows;
  const double n = static_cast<double>(problem.slopes.rows);
  const double d = static_cast<double>(problem.slopes.cols);
  // Flops of an eigenbasis for each group, and of slopes in the basis and certificates of items.
  const int threads =
      threads_for(static_cast<double>(m) * 12 * d * d * d + n * (2 * d * d + 400 * d), n_threads);
  PerThread<LevelScratch> scratch(threads);
  for_blocks(m, threads, [&](index_t group, int thread) {
    Group(problem, group, scratch[thread]).run(levels);
  });
}

}  // namespace eigenfeat
