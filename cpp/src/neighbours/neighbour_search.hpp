// Private to local_means: search for the neighbours of each class.
//
// There are two methods. By blocks: any queries, with lists of candidates for one block at a time.
// Mutual, if the queries are the references: every product of two tiles of rows is used for both,
// which halves the flops, and the lists of all rows are in memory; rows with more candidates than a
// list can store are searched again by blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/class_order.hpp"
#include "base/row_units.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/local_means.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/distance_kernels.hpp"
#include "neighbours/near_list.hpp"

namespace eigenfeat {

inline constexpr index_t kScan = 128;  // distances between two updates of the limit

// Scratch of one thread.
template <class T>
struct SearchScratch {
  AlignedBuffer<T> queries, references, dots, transposed, low;
  Vector<T> query_radius, ends;
  Vector<NearList<T>> lists;  // one for each query, for the current class
  Vector<std::int32_t> hits;
  Vector<std::pair<double, index_t>> exact;
};

// Candidates of every row and class; row p and class c have list p n_classes + c.
template <class T>
struct CandidateLists {
  struct Entry {
    T low;
    std::int32_t place;
  };
  index_t capacity = 0;
  AlignedBuffer<Entry> entries;
  Vector<T> limits;
  Vector<std::int32_t> counts;  // -1 after an overflow

  // Room for the k nearest, and for rows whose intervals overlap that of the k-th.
  static index_t capacity_for(index_t k) { return k + std::max<index_t>(k / 2, 22); }
  CandidateLists(index_t n_lists, index_t k)
      : capacity(capacity_for(k)),
        entries(n_lists * capacity),
        limits(n_lists, std::numeric_limits<T>::infinity()),
        counts(n_lists, 0) {}
};

template <class T>
class NeighbourSearch {
 public:
  NeighbourSearch(const LocalRows<T>& rows, index_t n_neighbors, VectorView<index_t> neighbours,
                  int n_threads);
  void run();

 private:
  index_t d() const { return rows_.references.cols; }
  index_t row_at(index_t place) const { return order_.rows[place]; }
  void pack(const T* row, T* out) const {
    kernels<DistanceKernels<T>>().shift_and_scale(row, d(), shift_.data(), scale_, out);
  }
  void prepare(SearchScratch<T>& s, index_t n_queries, index_t n_references) const;
  void measure_references();
  bool excluded(index_t query, index_t row) const {
    if (!rows_.same) return false;
    return row == query || (!rows_.groups.empty() && rows_.groups[row] == rows_.groups[query]);
  }
  T width(T query_radius, index_t place) const {  // width of the interval of a candidate
    const T norms = query_radius + radius_[place];
    return T(2) * (relative_ * norms * norms + absolute_);
  }
  // Calls take(low, place) for the places in [from, to) with a lower end below limit(). dots: a
  // product for each place.
  template <class Limit, class Take>
  void scan(index_t query, T radius, index_t from, index_t to, const T* dots, SearchScratch<T>& s,
            Limit limit, Take take) const {
    const T factor = T(2) * relative_ * radius;
    const T beyond = relative_ * radius * radius + absolute_;  // not included in base and factor
    for (index_t p = from; p < to; p += kScan) {
      const index_t n = std::min(kScan, to - p);
      const index_t found = kernels<DistanceKernels<T>>().lows_below(
          dots + p, base_.data() + p, radius_.data() + p, factor, n, limit() + beyond, s.low.data(),
          s.hits.data());
      for (index_t h = 0; h < found; ++h) {
        const index_t at = s.hits[h];
        const T low = s.low[at] - beyond;
        if (low <= limit() && !excluded(query, row_at(p + at))) take(low, p + at);
      }
    }
  }
  void finish(index_t query, NearList<T>& list, index_t c, SearchScratch<T>& s) const;

  // Searches by blocks, for queries with the given row numbers.
  void search_by_blocks(const Vector<index_t>& queries);
  void search_block(const index_t* queries, index_t count, SearchScratch<T>& s) const;
  index_t read_block(const index_t* queries, index_t count, index_t first, index_t last, index_t c,
                     SearchScratch<T>& s) const;

  // Searches mutually; returns the rows whose lists overflowed.
  bool mutual_pays() const;
  Vector<index_t> search_mutually();
  void multiply_tiles(index_t i, index_t j, SearchScratch<T>& s) const;
  void read_tile(index_t queries, index_t references, const T* dots, CandidateLists<T>& lists,
                 SearchScratch<T>& s) const;
  void add_candidate(index_t query_place, index_t c, T low, index_t place, CandidateLists<T>& lists,
                     SearchScratch<T>& s) const;
  bool finish_row(index_t place, const CandidateLists<T>& lists, SearchScratch<T>& s) const;

  const LocalRows<T>& rows_;
  index_t k_;
  VectorView<index_t> out_;
  ClassOrder order_;
  RowUnits units_;
  int n_threads_;
  T scale_ = 1;
  Vector<T> shift_;  // scaled
  T relative_ = 0, absolute_ = 0;
  AlignedBuffer<T> radius_, base_;  // by place
};

}  // namespace eigenfeat
