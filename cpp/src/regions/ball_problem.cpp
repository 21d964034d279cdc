#include "regions/ball_problem.hpp"
#include "base/shape_text.hpp"

#include <string>

namespace eigenfeat {
namespace {

constexpr index_t kItemsPerBlock = 64;     // items that a thread processes at a time
constexpr index_t kWorthEigenvectors = 6;  // items of one dense matrix

}  // namespace

void check(const BallProblem& problem) {
  const index_t n = problem.slopes.rows, d = problem.slopes.cols;
  const index_t lines = problem.dense ? d : 1;
  require(d > 0, "g", "at least one column", "none");
  require(problem.curvatures.cols == d &&
              (problem.curvatures.rows == lines * n || problem.curvatures.rows == lines),
          "A", "one quadratic, or one per item, of " + std::to_string(d) + " variables",
          std::to_string(problem.curvatures.rows) + " rows of " +
              std::to_string(problem.curvatures.cols));
  require(problem.radii.size == n, "radius", std::to_string(n) + " entries",
          std::to_string(problem.radii.size));
  require(problem.curvatures.is_row_major() && problem.slopes.is_row_major(), "A, g",
          "row-major storage",
          shape_text(problem.curvatures) + " and " + shape_text(problem.slopes));
}

bool shared(const BallProblem& problem) {
  return problem.slopes.rows > 1 &&
         problem.curvatures.rows == (problem.dense ? problem.slopes.cols : 1);
}

MatrixView<const double> curvature_of(const BallProblem& problem, index_t item) {
  const index_t d = problem.slopes.cols, lines = problem.dense ? d : 1;
  return problem.curvatures.block(shared(problem) ? 0 : item * lines, 0, lines, d);
}

std::unique_ptr<Eigenbasis> basis_of(const BallProblem& problem, int n_threads) {
  if (!problem.dense || !shared(problem) || problem.slopes.rows < kWorthEigenvectors)
    return nullptr;
  return std::make_unique<Eigenbasis>(curvature_of(problem, 0), problem.slopes, n_threads);
}

double work_of(const BallProblem& problem) {
  const double n = static_cast<double>(problem.slopes.rows);
  const double d = static_cast<double>(problem.slopes.cols);
  return problem.dense && !shared(problem) ? n * (2 * d * d * d + 300 * d) : n * 100 * d;
}

// Each item with its own dense matrix is a block.
index_t block_of(const BallProblem& problem) {
  return problem.dense && !shared(problem) ? 1 : kItemsPerBlock;
}

}  // namespace eigenfeat
