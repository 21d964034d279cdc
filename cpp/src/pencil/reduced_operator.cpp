#include "pencil/reduced_operator.hpp"

#include <cmath>

#include "base/random_block.hpp"
#include "pencil/narrow.hpp"

namespace eigenfeat {

template <class T>
void ReducedOperator<T>::prepare(const CompactMatrix<T>& a, const Factor<T>& factor,
                                 index_t n_vectors, index_t least) {
  factor_ = &factor;
  a_ = &a;
  const index_t d = a.matrix().rows;
  constexpr index_t kNowhere = -1;
  Vector<index_t> place(d, kNowhere);
  coordinates_.clear();
  const auto take = [&](index_t i) {
    if (place[i] != kNowhere) return;
    place[i] = coordinates_.size();
    coordinates_.push_back(i);
  };
  for (const index_t i : factor.compact.rows()) take(i);
  for (const index_t i : a_->rows()) take(i);
  const index_t enough = std::max(coordinates_.size() + n_vectors, least);
  for (index_t i = 0; i < d && coordinates_.size() < enough; ++i) take(i);
  in_order_ = a_->is_whole() && factor.compact.is_whole();
  supported_at_.clear();
  for (const index_t i : a_->rows()) supported_at_.push_back(place[i]);
  scale_.clear();
  for (index_t k = factor.order(); k < coordinates_.size(); ++k) {
    const index_t i = coordinates_[k];
    scale_.push_back(T(1) / std::sqrt(factor.matrix(i, i) + factor.shifts[i]));
  }
}

template <class T>
void ReducedOperator<T>::prepare_products(MatrixView<const T> a, const Factor<T>& factor) {
  factor_ = &factor;
  own_.read_whole(a);
  a_ = &own_;
}

// Rows of y after the coupled rows <- scaled rows of x.
template <class T>
void ReducedOperator<T>::scale_rest(const T* x, index_t width, T* y) const {
  const index_t first = factor_->order();
  for (index_t k = first; k < order(); ++k) {
    for (index_t c = k * width; c < (k + 1) * width; ++c) y[c] = scale_[k - first] * x[c];
  }
}

template <class T>
void ReducedOperator<T>::apply(const T* x, index_t width, T* y, int n_threads) {
  first_.reserve(order() * width);
  second_.reserve(order() * width);
  solve_upper(*factor_, x, width, y, n_threads);
  scale_rest(x, width, y);
  if (in_order_) {
    multiply_narrow<T>(Shape::symmetric, a_->view(), y, width, first_.data(), n_threads);
  } else {
    gather_rows(supported_at_, y, width, first_.data());
    multiply_narrow<T>(Shape::symmetric, a_->view(), first_.data(), width, second_.data(),
                       n_threads);
    scatter_rows(supported_at_, second_.data(), width, order(), first_.data());
  }
  solve_lower(*factor_, first_.data(), width, y, n_threads);
  scale_rest(first_.data(), width, y);
}

template <class T>
void ReducedOperator<T>::random_image(index_t width, std::uint64_t stream, T* y, int n_threads) {
  const index_t supported = supported_at_.size();
  first_.reserve(order() * width);
  second_.reserve(order() * width);
  fill_random(y, supported * width, stream);
  multiply_narrow<T>(Shape::symmetric, a_->view(), y, width, second_.data(), n_threads);
  scatter_rows(supported_at_, second_.data(), width, order(), first_.data());
  solve_lower(*factor_, first_.data(), width, y, n_threads);
  scale_rest(first_.data(), width, y);
}

template <class T>
void ReducedOperator<T>::back(const T* u, index_t width, T* v, int n_threads) {
  if (in_order_) {
    solve_upper(*factor_, u, width, v, n_threads);
    return;
  }
  first_.reserve(order() * width);
  solve_upper(*factor_, u, width, first_.data(), n_threads);
  scale_rest(u, width, first_.data());
  scatter_rows(coordinates_, first_.data(), width, factor_->matrix.rows, v);
}

template <class T>
void ReducedOperator<T>::product(const CompactMatrix<T>& matrix, const T* v, index_t width, T* out,
                                 int n_threads) {
  if (matrix.is_whole()) {
    multiply_narrow<T>(Shape::symmetric, matrix.view(), v, width, out, n_threads);
    return;
  }
  first_.reserve(matrix.order() * width);
  second_.reserve(matrix.order() * width);
  gather_rows(matrix.rows(), v, width, first_.data());
  multiply_narrow<T>(Shape::symmetric, matrix.view(), first_.data(), width, second_.data(),
                     n_threads);
  scatter_rows(matrix.rows(), second_.data(), width, factor_->matrix.rows, out);
}

template <class T>
void ReducedOperator<T>::numerator(const T* v, index_t width, T* av, int n_threads) {
  product(*a_, v, width, av, n_threads);
}

template <class T>
void ReducedOperator<T>::denominator(const T* v, index_t width, T* bv, int n_threads) {
  const CompactMatrix<T>& b = factor_->compact;
  product(b, v, width, bv, n_threads);
  index_t coupled = 0;
  for (index_t i = 0; i < factor_->matrix.rows; ++i) {
    // The product includes the diagonal of the coupled rows.
    const bool is_coupled = coupled < b.order() && b.rows()[coupled] == i;
    if (is_coupled) ++coupled;
    const T diagonal = factor_->shifts[i] + (is_coupled ? T(0) : factor_->matrix(i, i));
    for (index_t c = i * width; c < (i + 1) * width; ++c) bv[c] += diagonal * v[c];
  }
}

template class ReducedOperator<float>;
template class ReducedOperator<double>;

}  // namespace eigenfeat
