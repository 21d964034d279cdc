#include "eigenfeat/pencil.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/tier.hpp"
#include "eigenfeat/vector.hpp"
#include "pencil/pencil_item.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMinTiledOrder = 256;  // smaller problems run on one thread each
constexpr index_t kMebibyte = index_t{1} << 20;
// Limit for factors in memory, at least one factor.
constexpr index_t kFactorBytes = 1024 * kMebibyte;
// Waves of fewer bytes lose more time between waves.
constexpr index_t kSmallWaveBytes = 64 * kMebibyte;
constexpr index_t kCopyBytes = 64 * kMebibyte;  // limit for shared copies of numerators
constexpr index_t kItemsPerThread = 8;          // with as many, threads end at about the same time
// As kItemsPerThread, for jobs of a denominator with its items.
constexpr index_t kDenominatorsPerThread = 4;

template <class T>
index_t factor_bytes(index_t d, bool for_krylov) {
  return factor_numbers(d, for_krylov) * static_cast<index_t>(sizeof(T));
}

// Number of numerators of several items whose copies without zero rows are in memory.
template <class T>
index_t shared_copies(index_t d, index_t n_shared) {
  return std::min(n_shared, kCopyBytes / (d * d * static_cast<index_t>(sizeof(T))));
}

// Whether factors of this size, with this number of items, are enough for one wave.
bool is_full(index_t bytes, index_t n_items, index_t d, int n_threads) {
  const bool enough = n_items >= kItemsPerThread * n_threads;
  return bytes > kFactorBytes || (enough && (d >= kMinTiledOrder || bytes > kSmallWaveBytes));
}

// Whether a job is a denominator with all its items. The factor is then in the cache of the thread,
// and its memory is reused for the next job.
bool by_denominator(index_t n_denominators, index_t factor, int n_threads) {
  return n_denominators >= kDenominatorsPerThread * n_threads &&
         (n_threads + 1) * factor <= kFactorBytes;
}

template <class T>
void check_problem(const PencilProblem<T>& problem, const PencilOptions& options) {
  require(!problem.denominators.empty() && !problem.numerators.empty(), "B", "at least one matrix",
          "none");
  const index_t d = problem.denominators.front().rows;
  const auto check = [d](const Vector<MatrixView<const T>>& matrices, const char* name) {
    for (const auto& m : matrices) {
      require(m.rows == d && m.cols == d && m.is_row_major(), name,
              "row-major (" + std::to_string(d) + ", " + std::to_string(d) + ") matrices",
              "(" + std::to_string(m.rows) + ", " + std::to_string(m.cols) + ")");
    }
  };
  check(problem.numerators, "A");
  check(problem.denominators, "B");
  require(d >= 1, "B", "at least one row", "none");
  const index_t n = problem.denominators.size(), each = n * d;
  require(problem.shifts.size() == n || problem.shifts.size() == each, "shifts",
          std::to_string(n) + " or " + std::to_string(each) + " entries",
          std::to_string(problem.shifts.size()));
  require(options.n_vectors >= 1 && options.n_vectors <= d, "n_vectors",
          "a number in [1, " + std::to_string(d) + "]", std::to_string(options.n_vectors));
  const index_t a_count = problem.numerators.size();
  const index_t b_count = problem.denominators.size();
  for (const auto& [a, b] : problem.items) {
    require(a >= 0 && a < a_count && b >= 0 && b < b_count, "items", "indices of given matrices",
            "(" + std::to_string(a) + ", " + std::to_string(b) + ")");
  }
}

template <class T>
void check_solution(const PencilSolution<T>& s, index_t n, index_t m, index_t d) {
  require(s.eigenvalues.size == n * m && s.residuals.size == n * m && s.vectors.size == n * m * d &&
              s.found.size == n && s.iterations.size == n && s.solver.size == n &&
              s.status.size == n,
          "solution",
          "vectors of " + std::to_string(n) + " pencils, " + std::to_string(m) + " each of " +
              std::to_string(d) + " entries",
          std::to_string(s.vectors.size) + " entries for " + std::to_string(s.status.size) +
              " pencils");
}

// The cost model of choose_solver: 10^10 times the seconds of one pencil on one core (Emerald
// Rapids), fitted to bench/solver_costs.py for d from 50 to 2,000. Only ratios matter.
struct SolverCosts {
  Tier tier = Tier::baseline;
  double full_d3 = 0, full_d2 = 0;  // full: full_d3 d^3 + full_d2 d^2
  // For m < d, syevr uses bisection and inverse iteration, with a cost for each vector:
  // subset_d3 d^3 + subset_d2 d^2 + subset_dm d m. For m = d it costs little more than sygvd:
  // subset_of_all times full.
  double subset_d3 = 0, subset_d2 = 0, subset_dm = 0, subset_of_all = 0;
  double tridiagonal_d3 = 0, tridiagonal_d2 = 0, tridiagonal_dm = 0, tridiagonal_d = 0;
  // krylov: columns_m m + columns_1 columns, each column_d2 d^2 + column_d d, and the factor,
  // factor_d3 d^3 + factor_d2 d^2, shared by the items of a denominator. A column is the cost of a
  // product with a vector, including orthogonalisation; narrow blocks need fewer columns, many
  // vectors need more. The number of columns that a pencil needs depends on its spectrum, which is
  // unknown.
  double columns_m = 0, columns_1 = 0, column_d2 = 0, column_d = 0, factor_d3 = 0, factor_d2 = 0;
};

constexpr SolverCosts baseline_costs() {
  SolverCosts costs;
  costs.tier = Tier::baseline;
  costs.full_d3 = 1.51;
  costs.full_d2 = 1505.0;
  costs.subset_d3 = 0.633;
  costs.subset_d2 = 494.0;
  costs.subset_dm = 5054.0;
  costs.subset_of_all = 1.2;
  costs.tridiagonal_d3 = 1.91;
  costs.tridiagonal_d2 = 210.0;
  costs.tridiagonal_dm = 1770.0;
  costs.tridiagonal_d = 8740.0;
  costs.columns_m = 3.49;
  costs.columns_1 = 39.1;
  costs.column_d2 = 8.3;
  costs.column_d = 0.0;
  costs.factor_d3 = 0.76;
  costs.factor_d2 = 0.0;
  return costs;
}

// Costs that are not given are those of the next lower tier.
constexpr SolverCosts v3_costs() {
  SolverCosts costs = baseline_costs();
  costs.tier = Tier::v3;
  costs.tridiagonal_d3 = 1.06;
  costs.tridiagonal_d2 = 46.0;
  costs.tridiagonal_dm = 975.0;
  costs.tridiagonal_d = 20000.0;
  costs.columns_m = 1.47;
  costs.columns_1 = 19.6;
  costs.column_d = 235.0;
  costs.factor_d3 = 0.34;
  costs.factor_d2 = 23.0;
  return costs;
}

constexpr SolverCosts v4_costs() {
  SolverCosts costs = v3_costs();
  costs.tier = Tier::v4;
  costs.subset_d3 = 0.548;
  costs.subset_d2 = 546.0;
  costs.subset_dm = 4734.0;
  costs.tridiagonal_d3 = 1.00;
  costs.tridiagonal_d2 = 57.5;
  costs.tridiagonal_dm = 825.0;
  costs.tridiagonal_d = 16600.0;
  costs.columns_m = 1.50;
  costs.column_d = 181.0;
  costs.factor_d3 = 0.11;
  costs.factor_d2 = 127.0;
  return costs;
}

constexpr SolverCosts kSolverCosts[] = {baseline_costs(), v3_costs(), v4_costs()};
static_assert(kSolverCosts[0].tier == Tier::baseline && kSolverCosts[1].tier == Tier::v3 &&
                  kSolverCosts[2].tier == Tier::v4,
              "a row for each tier, in the order of the tiers");

// One call of solve_pencils.
template <class T>
class Batch {
 public:
  Batch(const PencilProblem<T>& problem, const PencilOptions& options,
        const PencilSolution<T>& solution)
      : problem_(problem),
        options_(options),
        solution_(solution),
        n_threads_(threads_for(work_of(problem), options.n_threads)),
        solvers_(n_threads_),
        order_(problem.items.size()) {
    const index_t d = problem.denominators.front().rows;
    const double per_denominator =
        static_cast<double>(problem.items.size()) /
        static_cast<double>(std::max<index_t>(problem.denominators.size(), 1));
    if (options_.solver == Solver::automatic) {
      options_.solver = choose_solver(d, options.n_vectors, per_denominator);
    }
    if (options_.tolerance <= 0.0) options_.tolerance = kDefaultTolerance<T>;
    if (problem.shifts.size() == problem.denominators.size()) {
      diagonals_.reserve(problem.shifts.size() * d);
      for (const T shift : problem.shifts) diagonals_.insert(diagonals_.end(), d, shift);
    }
    std::iota(order_.begin(), order_.end(), index_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](index_t x, index_t y) {
      return problem_.items[x].second < problem_.items[y].second;
    });
  }

  void run() {
    if (order_.empty()) return;
    copy_numerators();
    begins_.push_back(0);
    for (index_t p = 1; p < order_.size(); ++p) {
      if (denominator(p) != denominator(p - 1)) begins_.push_back(p);
    }
    const index_t n_denominators = begins_.size();
    begins_.push_back(order_.size());
    if (by_denominator(n_denominators, factor_bytes<T>(d(), for_krylov()), n_threads_)) {
      solve_by_denominator();
      return;
    }
    for (index_t first = 0; first < n_denominators;) {
      const index_t last = wave_end(first);
      factorise_wave(first, last);
      solve_wave(first, last);
      first = last;
    }
  }

 private:
  // About 10 d^3 flops for each item, and a constant cost, which counts for small d.
  static double work_of(const PencilProblem<T>& problem) {
    const double width = static_cast<double>(problem.denominators.front().rows);
    return static_cast<double>(problem.items.size()) * 10.0 * (width * width * width + 1000.0);
  }
  index_t denominator(index_t position) const { return problem_.items[order_[position]].second; }
  index_t d() const { return problem_.denominators.front().rows; }
  VectorView<const T> shifts_of(index_t b) const {
    const Vector<T>& all = diagonals_.empty() ? problem_.shifts : diagonals_;
    return {all.data() + b * d(), d()};
  }
  bool for_krylov() const {
    return options_.solver == Solver::krylov && krylov_fits(d(), options_.n_vectors);
  }

  // With few denominators, work is divided into waves: first the factors of the wave, then its
  // items. Returns the end of the wave that starts with a denominator.
  index_t wave_end(index_t first) const {
    const index_t each = factor_bytes<T>(d(), for_krylov());
    index_t last = first + 1;
    while (last + 1 < begins_.size() &&
           !is_full((last + 1 - first) * each, begins_[last] - begins_[first], d(), n_threads_)) {
      ++last;
    }
    return last;
  }

  // Copies numerators that several items share, up to the limit of memory.
  void copy_numerators() {
    const index_t n = problem_.numerators.size();
    Vector<index_t> uses(n, index_t{0});
    for (const auto& item : problem_.items) ++uses[item.first];
    Vector<index_t> shared;
    for (index_t a = 0; for_krylov() && a < n; ++a) {
      if (uses[a] > 1) shared.push_back(a);
    }
    shared.resize(shared_copies<T>(d(), shared.size()));
    copies_.resize(shared.size());
    copy_of_.assign(n, nullptr);
    for_blocks(shared.size(), n_threads_, [&](index_t k, int) {
      copies_[k].read(problem_.numerators[shared[k]], Entries::all);
      copy_of_[shared[k]] = &copies_[k];
    });
  }

  // Many jobs run on one thread each; few large jobs run one after the other, tiled over the threads.
  void spread(index_t n,
              const std::function<void(index_t job, int thread, int inner)>& work) const {
    if (n >= n_threads_ || d() < kMinTiledOrder) {
      for_blocks(n, n_threads_, [&](index_t job, int thread) { work(job, thread, 1); });
    } else {
      for (index_t job = 0; job < n; ++job) {
        check_interrupt();
        work(job, 0, n_threads_);
      }
    }
  }

  void factorise_at(index_t group, int inner, Factor<T>& factor) const {
    const index_t b = denominator(begins_[group]);
    factorise<T>(problem_.denominators[b], shifts_of(b), for_krylov(), inner, factor);
  }

  void factorise_wave(index_t first, index_t last) {
    if (factors_.size() < last - first) factors_.resize(last - first);
    spread(last - first,
           [&](index_t job, int, int inner) { factorise_at(first + job, inner, factors_[job]); });
  }

  // Solves the first item of the batch alone, to estimate the number of columns of the others.
  // Returns the position of the next item.
  index_t solve_first() {
    if (options_.solver != Solver::krylov || order_.size() < 2) return 0;
    solve_item(order_[0], factors_[0], 0, n_threads_);
    // A further line of columns costs half of a check, and saves most items a second check.
    expected_columns_ = solution_.iterations[order_[0]];
    return 1;
  }

  void solve_wave(index_t first, index_t last) {
    const index_t begin = first == 0 ? solve_first() : begins_[first];
    spread(begins_[last] - begin, [&](index_t job, int thread, int inner) {
      const index_t position = begin + job;
      const auto next = std::upper_bound(begins_.begin(), begins_.end(), position);
      const index_t group = next - begins_.begin() - 1;
      solve_item(order_[position], factors_[group - first], thread, inner);
    });
  }

  void solve_by_denominator() {
    factors_.resize(1);
    factorise_at(0, n_threads_, factors_[0]);
    const index_t done = solve_first();
    PerThread<Factor<T>> own(n_threads_);
    for_blocks(begins_.size() - 1, n_threads_, [&](index_t group, int thread) {
      Factor<T>& factor = group == 0 ? factors_[0] : own[thread];
      if (group > 0) factorise_at(group, 1, factor);
      for (index_t p = std::max(begins_[group], done); p < begins_[group + 1]; ++p)
        solve_item(order_[p], factor, thread, 1);
    });
  }

  void solve_item(index_t i, const Factor<T>& factor, int thread, int inner) {
    const index_t m = options_.n_vectors;
    ItemResult<T> result;
    result.eigenvalues = {solution_.eigenvalues.data + i * m, m};
    result.residuals = {solution_.residuals.data + i * m, m};
    result.vectors = row_major(solution_.vectors.data + i * m * d(), m, d());
    result.solver = options_.solver;
    if (factor.status == Status::ok) {
      const index_t a = problem_.items[i].first;
      solvers_[thread].expect_columns(expected_columns_);
      solvers_[thread].solve(problem_.numerators[a], copy_of_[a], factor, options_, inner, result);
    } else {
      result.status = factor.status;
    }
    if (result.status != Status::ok && result.status != Status::inaccurate) result.found = 0;
    const T nothing = std::numeric_limits<T>::quiet_NaN();
    for (index_t r = result.found; r < m; ++r) {
      result.eigenvalues[r] = result.residuals[r] = nothing;
      std::fill(result.vectors.row(r), result.vectors.row(r) + d(), nothing);
    }
    solution_.found[i] = result.found;
    solution_.iterations[i] = result.iterations;
    solution_.solver[i] = static_cast<int>(result.solver);
    solution_.status[i] = static_cast<int>(result.status);
  }

  const PencilProblem<T>& problem_;
  PencilOptions options_;
  const PencilSolution<T>& solution_;
  int n_threads_;
  PerThread<ItemSolver<T>> solvers_;
  Vector<T> diagonals_;    // shifts of all diagonal entries, if each shift is one number
  Vector<index_t> order_;  // items by denominator
  Vector<CompactMatrix<T>> copies_;
  Vector<const CompactMatrix<T>*> copy_of_;  // of each numerator, or null
  index_t expected_columns_ = 0;
  Vector<index_t> begins_;     // position of the first item of each denominator, and the end
  Vector<Factor<T>> factors_;  // factors of the denominators of this wave, in their order
};

}  // namespace

Solver choose_solver(index_t d, index_t n_vectors, double items_per_denominator) {
  const SolverCosts& cost = kSolverCosts[static_cast<std::size_t>(tier_in_use())];
  const double n = static_cast<double>(d), m = static_cast<double>(n_vectors);
  const double n2 = n * n, n3 = n2 * n;
  const double share = 1.0 / std::max(items_per_denominator, 1.0);
  const double full = cost.full_d3 * n3 + cost.full_d2 * n2;
  const double subset = n_vectors == d
                            ? cost.subset_of_all * full
                            : cost.subset_d3 * n3 + cost.subset_d2 * n2 + cost.subset_dm * n * m;
  const double columns = cost.columns_m * m + cost.columns_1;
  const double krylov = columns * (cost.column_d2 * n2 + cost.column_d * n) +
                        share * (cost.factor_d3 * n3 + cost.factor_d2 * n2);
  const double tridiagonal = cost.tridiagonal_d3 * n3 + cost.tridiagonal_d2 * n2 +
                             cost.tridiagonal_dm * n * m + cost.tridiagonal_d * n;
  const double range = few_of(d, n_vectors) ? tridiagonal : subset;
  if (krylov_fits(d, n_vectors) && krylov < range && krylov < full) return Solver::krylov;
  if (full <= range) return Solver::full;
  return few_of(d, n_vectors) ? Solver::tridiagonal : Solver::subset;
}

template <class T>
bool is_positive_definite(MatrixView<const T> matrix, VectorView<const T> shifts, int n_threads) {
  require(matrix.rows >= 1 && matrix.rows == matrix.cols && matrix.is_row_major(), "matrix",
          "a row-major (d, d) matrix with d at least 1",
          "(" + std::to_string(matrix.rows) + ", " + std::to_string(matrix.cols) + ")");
  require(shifts.size == matrix.rows, "shifts", std::to_string(matrix.rows) + " entries",
          std::to_string(shifts.size));
  Factor<T> factor;
  factorise(matrix, shifts, false, n_threads, factor);
  return factor.status == Status::ok;
}

template <class T>
double pencil_bytes(index_t d, index_t n_items, index_t n_denominators,
                    const PencilOptions& options) {
  if (n_items == 0 || n_denominators == 0) return 0.0;
  const double per_denominator = static_cast<double>(n_items) / static_cast<double>(n_denominators);
  const Solver solver = options.solver == Solver::automatic
                            ? choose_solver(d, options.n_vectors, per_denominator)
                            : options.solver;
  const bool krylov = solver == Solver::krylov && krylov_fits(d, options.n_vectors);
  const int n_threads = threads_for(std::numeric_limits<double>::max(), options.n_threads);
  const index_t each = factor_bytes<T>(d, krylov);
  index_t held = 1;
  if (by_denominator(n_denominators, each, n_threads)) {
    held = std::min<index_t>(n_threads + 1, n_denominators);
  } else {
    while (held < n_denominators &&
           !is_full((held + 1) * each,
                    static_cast<index_t>(static_cast<double>(held) * per_denominator), d,
                    n_threads)) {
      ++held;
    }
  }
  // Columns of length d: dense copies, or the basis and a second basis for restarts. The copy of the
  // tridiagonal kernels is in double.
  const index_t doubled = std::is_same_v<T, double> ? d : 2 * d;
  const index_t columns = krylov                     ? 2 * krylov_capacity(options.n_vectors)
                          : solver == Solver::full   ? 2 * d
                          : solver == Solver::subset ? d
                                                     : d + doubled;
  const double vectors = static_cast<double>(n_items) * static_cast<double>(options.n_vectors) +
                         static_cast<double>(n_threads) * static_cast<double>(columns);
  // Krylov: copies of A without zero rows, one for each thread in addition to the shared copies.
  const index_t copied = krylov ? n_threads + shared_copies<T>(d, n_items / 2) : 0;
  const double copies =
      static_cast<double>(copied) * static_cast<double>(d * d) * static_cast<double>(sizeof(T));
  return static_cast<double>(held * each) + copies +
         vectors * static_cast<double>(d) * static_cast<double>(sizeof(T));
}

template <class T>
void solve_pencils(const PencilProblem<T>& problem, const PencilOptions& options,
                   const PencilSolution<T>& solution) {
  check_problem(problem, options);
  check_solution(solution, problem.items.size(), options.n_vectors,
                 problem.denominators.front().rows);
  Batch<T>(problem, options, solution).run();
}

template bool is_positive_definite<float>(MatrixView<const float>, VectorView<const float>, int);
template bool is_positive_definite<double>(MatrixView<const double>, VectorView<const double>, int);
template double pencil_bytes<float>(index_t, index_t, index_t, const PencilOptions&);
template double pencil_bytes<double>(index_t, index_t, index_t, const PencilOptions&);
template void solve_pencils<float>(const PencilProblem<float>&, const PencilOptions&,
                                   const PencilSolution<float>&);
template void solve_pencils<double>(const PencilProblem<double>&, const PencilOptions&,
                                    const PencilSolution<double>&);

}  // namespace eigenfeat
