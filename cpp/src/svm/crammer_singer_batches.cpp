#include <algorithm>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/svm_kernels.hpp"
#include "svm/svm_state.hpp"

namespace eigenfeat {

// Computes the corner s_i of every row of a batch at the current W; returns the sum of the gaps.
template <class T>
double CrammerSinger<T>::State::batch_scores(const Vector<index_t>& order, index_t begin,
                                             index_t end, int n_threads) {
  constexpr index_t tile = 32;
  const index_t count = end - begin;
  const double work =
      2.0 * rows.entries() / static_cast<double>(n) * static_cast<double>(count * width);
  const int threads = threads_for(work, n_threads);
  PerThread<AlignedBuffer<T>> scratch(threads);
  for_ranges(count, tile, threads, [&](index_t first, index_t last, int thread) {
    AlignedBuffer<T>& g = scratch[thread];
    g.reserve(width);
    for (index_t r = first; r < last; ++r) {
      const index_t i = order[begin + r];
      if (r + 1 < last) rows.prefetch(order[begin + r + 1]);
      rows.scores(i, w.data(), width, g.data());
      const T top = margins(i, g.data());
      gaps[r] = report(i, g.data(), top).gap;
      corners[r] = std::max_element(g.data(), g.data() + k) - g.data();
    }
  });
  double sum = 0.0;
  for (index_t r = 0; r < end - begin; ++r) sum += gaps[r];
  return sum;
}

// delta <- b_i - s_i, so that a full step adds x_i delta^T to W; returns its squared length.
template <class T>
double CrammerSinger<T>::State::toward_corner(index_t i, index_t corner) {
  changed.clear();
  double square = 0.0;
  for (index_t c = 0; c < k; ++c) {
    const double change = row(i)[c] - (c == corner ? costs[i] : 0.0);
    if (change == 0.0) continue;
    delta[c] = static_cast<T>(change);
    square += change * change;
    changed.push_back(c);
  }
  return square;
}

// b_i += step (s_i - b_i)
template <class T>
void CrammerSinger<T>::State::mix(index_t i, index_t corner, double step) {
  double others = 0.0;
  for (index_t c = 0; c < k; ++c) {
    row(i)[c] = (1.0 - step) * row(i)[c] + (c == corner ? step * costs[i] : 0.0);
    if (c != labels[i]) others += row(i)[c];
  }
  // Restores the sum, which is the cost, after rounding.
  row(i)[labels[i]] = std::max(costs[i] - others, 0.0);
  moved[i] = others > 0.0 ? 1 : 0;
}

// A batch of one row: |dW|^2 = |delta|^2 |x_i|^2, and only weights of the features of the row change.
template <class T>
void CrammerSinger<T>::State::single_step(index_t i, index_t corner, double row_gap) {
  const double square = toward_corner(i, corner) * rows.square(i);
  const double step = square > row_gap ? row_gap / square : 1.0;
  for (const index_t c : changed) delta[c] *= static_cast<T>(step);
  rows.add(i, delta.data(), changed, width, w.data());
  for (const index_t c : changed) delta[c] = T(0);
  mix(i, corner, step);
}

// Moves the rows of a batch towards their corners by the common step that maximises the dual.
template <class T>
void CrammerSinger<T>::State::batch_step(const Vector<index_t>& order, index_t begin, index_t end,
                                         double sum) {
  if (end - begin == 1) return single_step(order[begin], corners[0], sum);
  const index_t size = p * width;
  for (index_t r = 0; r < end - begin; ++r) {
    if (gaps[r] <= 0.0) continue;
    const index_t i = order[begin + r];
    toward_corner(i, corners[r]);
    rows.add(i, delta.data(), changed, width, direction.data());
    for (const index_t c : changed) delta[c] = T(0);
  }
  const double square = kernels<SvmKernels<T>>().sum_of_squares(direction.data(), size);
  const double step = square > sum ? sum / square : 1.0;
  kernels<SvmKernels<T>>().add_and_clear(static_cast<T>(step), direction.data(), size, w.data());
  for (index_t r = 0; r < end - begin; ++r) {
    if (gaps[r] > 0.0) mix(order[begin + r], corners[r], step);
  }
}

template <class T>
void CrammerSinger<T>::State::batches(int n_threads) {
  Vector<index_t> order(n);
  for (index_t i = 0; i < n; ++i) order[i] = i;
  random.shuffle(order);
  const index_t most = std::min(options.batch, n);
  corners.resize(most);
  gaps.resize(most);
  if (direction.empty()) direction = AlignedBuffer<T>::zeros(p * width);
  for (index_t begin = 0; begin < order.size(); begin += most) {
    const index_t end = std::min(begin + most, order.size());
    const double sum = batch_scores(order, begin, end, n_threads);
    if (sum > 0.0) batch_step(order, begin, end, sum);
  }
}

template struct CrammerSinger<float>::State;
template struct CrammerSinger<double>::State;

}  // namespace eigenfeat
