// std::vector with signed sizes and indices, as in views and LAPACK.
//
// Vector<T> owns, moves, copies, grows and iterates like std::vector. size(), operator[], resize and
// other functions use index_t, so that indices need no casts. Indices are checked if assert is
// enabled. For aligned or uninitialised memory see scratch.hpp.
#pragma once

#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
class Vector {
  using Entries = std::vector<T>;
  template <class Iterator>
  using RequireIterator = typename std::iterator_traits<Iterator>::iterator_category;

 public:
  using value_type = T;
  using iterator = typename Entries::iterator;
  using const_iterator = typename Entries::const_iterator;

  // A negative size throws std::length_error, like a size that exceeds the memory.
  Vector() = default;
  explicit Vector(index_t size) : entries_(unsigned_size(size)) {}
  Vector(index_t size, const T& value) : entries_(unsigned_size(size), value) {}
  Vector(std::initializer_list<T> values) : entries_(values) {}
  template <class Iterator, class = RequireIterator<Iterator>>
  Vector(Iterator begin, Iterator end) : entries_(begin, end) {}

  index_t size() const { return static_cast<index_t>(entries_.size()); }
  bool empty() const { return entries_.empty(); }

  T& operator[](index_t i) {
    assert(i >= 0 && i < size());
    return entries_[static_cast<std::size_t>(i)];
  }
  const T& operator[](index_t i) const {
    assert(i >= 0 && i < size());
    return entries_[static_cast<std::size_t>(i)];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  const T& back() const { return (*this)[size() - 1]; }

  T* data() { return entries_.data(); }
  const T* data() const { return entries_.data(); }
  iterator begin() { return entries_.begin(); }
  const_iterator begin() const { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator end() const { return entries_.end(); }

  void reserve(index_t size) { entries_.reserve(unsigned_size(size)); }
  void resize(index_t size) { entries_.resize(unsigned_size(size)); }
  void resize(index_t size, const T& value) { entries_.resize(unsigned_size(size), value); }
  void assign(index_t size, const T& value) { entries_.assign(unsigned_size(size), value); }
  template <class Iterator, class = RequireIterator<Iterator>>
  void assign(Iterator begin, Iterator end) {
    entries_.assign(begin, end);
  }
  void clear() { entries_.clear(); }
  void push_back(const T& value) { entries_.push_back(value); }
  void push_back(T&& value) { entries_.push_back(std::move(value)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return entries_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  iterator insert(const_iterator before, index_t count, const T& value) {
    return entries_.insert(before, unsigned_size(count), value);
  }
  template <class Iterator, class = RequireIterator<Iterator>>
  iterator insert(const_iterator before, Iterator begin, Iterator end) {
    return entries_.insert(before, begin, end);
  }
  iterator erase(const_iterator from, const_iterator to) { return entries_.erase(from, to); }

  friend bool operator==(const Vector& a, const Vector& b) { return a.entries_ == b.entries_; }
  friend bool operator!=(const Vector& a, const Vector& b) { return !(a == b); }

 private:
  static std::size_t unsigned_size(index_t size) { return static_cast<std::size_t>(size); }

  Entries entries_;
};

}  // namespace eigenfeat
