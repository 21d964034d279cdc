#include "eigenfeat/crammer_singer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/svm_kernels.hpp"
#include "svm/svm_state.hpp"

namespace eigenfeat {
namespace {

void check(const SvmProblem& problem, const SvmOptions& options, index_t n) {
  const index_t k = problem.n_classes;
  require(n >= 1 && n < index_t{1} << 32, "X", "from 1 to 2^32 - 1 samples", std::to_string(n));
  require(k >= 2, "n_classes", "at least 2", std::to_string(k));
  require(problem.labels.size == n, "labels", std::to_string(n) + " entries",
          std::to_string(problem.labels.size));
  require(problem.costs.size == n, "costs", std::to_string(n) + " entries",
          std::to_string(problem.costs.size));
  require(problem.margin > 0.0 && std::isfinite(problem.margin), "margin", "a positive number",
          std::to_string(problem.margin));
  require(std::isfinite(problem.constant), "constant", "a finite number",
          std::to_string(problem.constant));
  require(options.batch >= 1, "batch", "at least 1", std::to_string(options.batch));
  for (index_t i = 0; i < n; ++i) {
    if (!(problem.labels[i] >= 0 && problem.labels[i] < k))
      refuse("labels", "indices in [0, " + std::to_string(k) + ")",
             std::to_string(problem.labels[i]) + " in row " + std::to_string(i));
    if (!(problem.costs[i] > 0.0 && std::isfinite(problem.costs[i])))
      refuse("costs", "positive numbers",
             std::to_string(problem.costs[i]) + " in row " + std::to_string(i));
  }
}

}  // namespace

template <class T>
CrammerSinger<T>::State::State(SvmRows<T> read, const SvmProblem& given, const SvmOptions& chosen)
    : rows(std::move(read)),
      labels(given.labels),
      costs(given.costs),
      n(rows.rows()),
      p(rows.cols()),
      k(given.n_classes),
      width(svm_width<T>(k)),
      margin(given.margin),
      options(chosen),
      random(chosen.seed),
      b(AlignedBuffer<double>::zeros(n * k)),
      moved(n, 0),
      exact(AlignedBuffer<double>::zeros(p * width)),
      w(AlignedBuffer<T>::zeros(p * width)),
      mask(AlignedBuffer<T>::zeros(width)),
      slack(n, 0.0F),
      z(k),
      fresh(k),
      delta(AlignedBuffer<T>::zeros(width)),
      scores(4 * width) {
  for (index_t i = 0; i < n; ++i) row(i)[labels[i]] = costs[i];
  for (index_t c = k; c < width; ++c) mask[c] = -std::numeric_limits<T>::infinity();
}

template <class T>
T CrammerSinger<T>::State::margins(index_t i, T* g) const {
  g[labels[i]] -= static_cast<T>(margin);
  return kernels<SvmKernels<T>>().masked_greatest(g, mask.data(), width);
}

template <class T>
RowReport CrammerSinger<T>::State::report(index_t i, const T* g, T greatest) const {
  const double top = static_cast<double>(greatest);
  const index_t own = labels[i];
  RowReport out;
  const double* have = row(i);
  index_t vertex = own;
  double least = static_cast<double>(g[own]);
  if (moved[i] == 0) {
    out.gap = costs[i] * (top - least);
  } else {
    least = std::numeric_limits<double>::infinity();
    index_t positive = 0;
    for (index_t c = 0; c < k; ++c) {
      if (have[c] <= 0.0) continue;
      const double value = static_cast<double>(g[c]);
      out.gap += have[c] * (top - value);
      least = std::min(least, value);
      vertex = c;
      ++positive;
    }
    if (positive > 1) vertex = k;
  }
  out.violation = top - least;
  if (out.violation <= 0.0 && vertex < k) {
    T next = -std::numeric_limits<T>::infinity();
    for (index_t c = 0; c < k; ++c) next = c != vertex && g[c] > next ? g[c] : next;
    out.slack = top - static_cast<double>(next);
  }
  return out;
}

// ---- the full pass -------------------------------------------------------------------------------

template <class T>
void CrammerSinger<T>::State::sum_weights(int n_threads) {
  // Groups of rows are summed in parallel, each into an array of its own.
  constexpr index_t most_groups = 64, group_rows = 512;
  constexpr double most_bytes = 64e6;  // of all these arrays
  Vector<index_t> support;
  for (index_t i = 0; i < n; ++i) {
    if (moved[i] != 0) support.push_back(i);
  }
  const index_t size = p * width, total = support.size();
  const auto affordable = static_cast<index_t>(most_bytes / (8.0 * static_cast<double>(size)));
  const index_t count = std::clamp<index_t>(
      std::min((total + group_rows - 1) / group_rows, affordable), 1, most_groups);
  const index_t run = (total + count - 1) / count;
  const double work = rows.entries() / static_cast<double>(n) * static_cast<double>(total * width);
  const int threads = threads_for(2.0 * work + static_cast<double>(count * size), n_threads);
  Vector<AlignedBuffer<double>> parts(count);
  for_blocks(count, threads, [&](index_t group, int) {
    AlignedBuffer<double>& part = parts[group];
    part = AlignedBuffer<double>::zeros(size);
    AlignedBuffer<double> a = AlignedBuffer<double>::zeros(width);
    Vector<index_t> classes;
    for (index_t s = group * run; s < std::min(total, (group + 1) * run); ++s) {
      const index_t i = support[s];
      const double* have = row(i);
      double sum = 0.0;
      classes.clear();
      for (index_t c = 0; c < k; ++c) {
        if (c == labels[i] || have[c] == 0.0) continue;
        a[c] = -have[c];
        sum += have[c];
        classes.push_back(c);
      }
      a[labels[i]] = sum;
      classes.push_back(labels[i]);
      rows.add(i, a.data(), classes, width, part.data());
      for (const index_t c : classes) a[c] = 0.0;
    }
  });
  constexpr index_t chunk = 4096;  // weights of a task
  for_ranges(size, chunk, threads, [&](index_t begin, index_t end, int) {
    for (index_t e = begin; e < end; ++e) {
      double sum = 0.0;
      for (const AlignedBuffer<double>& part : parts) sum += part[e];
      exact[e] = sum;
      w[e] = static_cast<T>(sum);
    }
  });
}

template <class T>
void CrammerSinger<T>::State::objective_of_duals() {
  energy = 0.0;
  for (index_t e = 0; e < p * width; ++e) energy += exact[e] * exact[e];
  double sum = 0.0;
  for (index_t i = 0; i < n; ++i) {
    if (moved[i] != 0) sum += costs[i] - row(i)[labels[i]];
  }
  dual = margin * sum - 0.5 * energy;
}

template <class T>
void CrammerSinger<T>::State::full_pass(int n_threads) {
  constexpr index_t tile = 256;  // rows of a task
  sum_weights(n_threads);
  objective_of_duals();
  struct Sums {
    double loss = 0.0, gap = 0.0;
  };
  Vector<Sums> sums((n + tile - 1) / tile);
  const double work = 2.0 * rows.entries() * static_cast<double>(width);
  const int threads = threads_for(work, n_threads);
  const bool by_fours = rows.dense() && n >= 4;
  if (by_fours) rows.sort_by_class(w.data(), k, width, n_threads, by_class);
  PerThread<AlignedBuffer<T>> scratch(threads);
  for_ranges(n, tile, threads, [&](index_t begin, index_t end, int thread) {
    AlignedBuffer<T>& g = scratch[thread];
    g.reserve(4 * width);
    Sums sum;
    for (index_t i = begin; i < end;) {
      const index_t together = by_fours && i + 4 <= end ? 4 : 1;
      if (together == 4) {
        rows.scores_of_four(i, w.data(), by_class.data(), k, width, g.data());
      } else {
        rows.scores(i, w.data(), width, g.data());
      }
      for (index_t r = 0; r < together; ++r, ++i) {
        T* own = g.data() + r * width;
        const T top = margins(i, own);
        const RowReport now = report(i, own, top);
        const double at_label = static_cast<double>(own[labels[i]]);
        sum.loss += costs[i] * (static_cast<double>(top) - at_label);
        sum.gap += now.gap;
        slack[i] = static_cast<float>(now.violation > 0.0 ? -now.violation : now.slack);
      }
    }
    sums[begin / tile] = sum;
  });
  Sums total;
  for (const Sums& sum : sums) {
    total.loss += sum.loss;
    total.gap += sum.gap;
  }
  primal = 0.5 * energy + total.loss;
  gap = total.gap;
  passed = true;
}

// ---- public functions ----------------------------------------------------------------------------

template <class T>
CrammerSinger<T>::CrammerSinger(MatrixView<const T> rows, const SvmProblem& problem,
                                const SvmOptions& options, int n_threads) {
  check(problem, options, rows.rows);
  state_ = std::make_unique<State>(SvmRows<T>(rows, problem.constant, n_threads), problem, options);
}

template <class T>
CrammerSinger<T>::CrammerSinger(const CsrView<T>& rows, const SvmProblem& problem,
                                const SvmOptions& options, int n_threads) {
  check(problem, options, rows.rows);
  state_ = std::make_unique<State>(SvmRows<T>(rows, problem.constant, n_threads), problem, options);
}

template <class T>
CrammerSinger<T>::CrammerSinger(CrammerSinger&&) noexcept = default;
template <class T>
CrammerSinger<T>::~CrammerSinger() = default;

template <class T>
void CrammerSinger<T>::start(MatrixView<const double> duals, int n_threads) {
  State& s = *state_;
  require(duals.rows == s.n && duals.cols == s.k, "duals",
          "shape (" + std::to_string(s.n) + ", " + std::to_string(s.k) + ")",
          "(" + std::to_string(duals.rows) + ", " + std::to_string(duals.cols) + ")");
  for (index_t i = 0; i < s.n; ++i) {
    for (index_t c = 0; c < s.k; ++c) {
      if (!std::isfinite(duals(i, c))) {
        require(false, "duals", "finite numbers",
                std::to_string(duals(i, c)) + " in row " + std::to_string(i));
      }
      s.z[c] = (c == s.labels[i] ? s.costs[i] : 0.0) - duals(i, c);
    }
    double* to = s.row(i);
    std::fill(to, to + s.k, 0.0);
    s.project(s.z.data(), s.k, s.costs[i], [&](index_t c, double value) { to[c] = value; });
    s.moved[i] = to[s.labels[i]] < s.costs[i] ? 1 : 0;
  }
  s.full_pass(n_threads);
}

template <class T>
index_t CrammerSinger<T>::run(index_t epochs, double tolerance, int n_threads) {
  State& s = *state_;
  if (!s.passed) s.full_pass(n_threads);
  for (index_t epoch = 0; epoch < epochs; ++epoch) {
    if (s.gap <= tolerance * s.primal) return epoch;
    if (s.options.solver == DualSolver::sequential) {
      s.sweeps(tolerance);
    } else {
      s.batches(n_threads);
    }
    s.full_pass(n_threads);
  }
  return epochs;
}

template <class T>
double CrammerSinger<T>::primal() const {
  return state_->primal;
}
template <class T>
double CrammerSinger<T>::dual() const {
  return state_->dual;
}
template <class T>
double CrammerSinger<T>::gap() const {
  return state_->gap;
}
template <class T>
index_t CrammerSinger<T>::features() const {
  return state_->p;
}
template <class T>
index_t CrammerSinger<T>::support() const {
  return std::count(state_->moved.begin(), state_->moved.end(), std::uint8_t{1});
}

template <class T>
void CrammerSinger<T>::weights(MatrixView<double> out) const {
  const State& s = *state_;
  require(out.rows == s.k && out.cols == s.p, "out", "shape " + shape_text(s.k, s.p),
          shape_text(out));
  for (index_t c = 0; c < s.k; ++c) {
    for (index_t j = 0; j < s.p; ++j) out(c, j) = s.exact[j * s.width + c];
  }
}

template <class T>
void CrammerSinger<T>::duals(MatrixView<double> out) const {
  const State& s = *state_;
  require(out.rows == s.n && out.cols == s.k, "out", "shape " + shape_text(s.n, s.k),
          shape_text(out));
  for (index_t i = 0; i < s.n; ++i) {
    double sum = 0.0;
    for (index_t c = 0; c < s.k; ++c) {
      if (c == s.labels[i]) continue;
      const double have = s.row(i)[c];
      out(i, c) = have == 0.0 ? 0.0 : -have;
      sum += have;
    }
    out(i, s.labels[i]) = sum;
  }
}

template class CrammerSinger<float>;
template class CrammerSinger<double>;

}  // namespace eigenfeat
