#include <algorithm>

#include "svm/svm_state.hpp"

namespace eigenfeat {

template <class T>
void CrammerSinger<T>::State::move(index_t i) {
  for (const index_t c : changed) {
    delta[c] = static_cast<T>(row(i)[c] - fresh[c]);
    row(i)[c] = fresh[c];
  }
  moved[i] = row(i)[labels[i]] < costs[i] ? 1 : 0;
  rows.add(i, delta.data(), changed, width, w.data());
  for (const index_t c : changed) delta[c] = T(0);
}

template <class T>
void CrammerSinger<T>::State::exact_step(index_t i, const T* g) {
  const double square = rows.square(i), size = costs[i];
  const double* have = row(i);
  std::fill(fresh.begin(), fresh.end(), 0.0);
  if (square > 0.0) {
    for (index_t c = 0; c < k; ++c) z[c] = have[c] + static_cast<double>(g[c]) / square;
    project(z.data(), k, size, [&](index_t c, double value) { fresh[c] = value; });
  } else {  // the scores of a row of zeros are constant
    fresh[std::max_element(g, g + k) - g] = size;
  }
  changed.clear();
  for (index_t c = 0; c < k; ++c) {
    if (fresh[c] != have[c]) changed.push_back(c);
  }
  if (!changed.empty()) move(i);
}

// Visits the active rows once; returns the sum of the gaps that the rows have when visited.
template <class T>
double CrammerSinger<T>::State::sweep(double negligible, double wide) {
  constexpr index_t ahead = 4;  // distance of the row that is prefetched
  random.shuffle(active);
  double seen = 0.0;
  index_t kept = 0;
  for (index_t at = 0; at < active.size(); ++at) {
    if (at + ahead < active.size()) rows.prefetch(active[at + ahead]);
    const index_t i = active[at];
    rows.scores(i, w.data(), width, scores.data());
    const T top = margins(i, scores.data());
    const RowReport now = report(i, scores.data(), top);
    seen += now.gap;
    if (now.gap > negligible * costs[i]) exact_step(i, scores.data());
    if (now.slack <= wide && now.gap >= negligible * costs[i]) active[kept++] = i;
  }
  active.resize(kept);
  return seen;
}

// Sweeps until the gap of the active rows is a small part of their gap in the first sweep, or half
// of the target. The target is relative to the dual, which nears the optimum before the primal.
template <class T>
void CrammerSinger<T>::State::sweeps(double tolerance) {
  constexpr int most_sweeps = 20;
  constexpr double enough = 0.1;  // share of the gap of the first sweep at which sweeps end
  constexpr double near = 0.1, wide = 0.3;  // leads at which rows join and leave, in margins
  constexpr double share = 0.3;  // share of the target gap below which a row is not moved
  double total = 0.0;
  for (index_t i = 0; i < n; ++i) total += costs[i];
  const double target = tolerance * std::max(dual, 0.0);
  active.clear();
  for (index_t i = 0; i < n; ++i) {
    if (static_cast<double>(slack[i]) <= near * margin) active.push_back(i);
  }
  const double first = sweep(share * target / total, wide * margin);
  const double stop = std::max(enough * std::min(first, gap), 0.5 * target);
  for (int turn = 1; turn < most_sweeps; ++turn) {
    if (sweep(share * target / total, wide * margin) <= stop) break;
  }
}

template struct CrammerSinger<float>::State;
template struct CrammerSinger<double>::State;

}  // namespace eigenfeat
