#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "class_order.hpp"
#include "distance_kernels.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/local_means.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "near_list.hpp"
#include "row_units.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMostQueries = 256;  // rows of a block
constexpr index_t kMostReferences = 512;
constexpr index_t kBlockBytes = index_t{1} << 24;
constexpr index_t kScan = 128;  // distances between two looks at the limit

index_t query_block(index_t n) {
  return std::clamp<index_t>((n / 16 + 31) / 32 * 32, 32, kMostQueries);
}

template <class T>
index_t reference_block(index_t d) {
  const index_t fit = kBlockBytes / (static_cast<index_t>(sizeof(T)) * std::max<index_t>(d, 1));
  return std::clamp<index_t>(fit, 64, kMostReferences);
}

// What one thread holds.
template <class T>
struct SearchScratch {
  AlignedBuffer<T> queries, references, dots, low;
  std::vector<T> query_radius;
  std::vector<NearList<T>> lists;  // of the class that is being read, one a query
  std::vector<std::int32_t> hits;
  std::vector<std::pair<double, index_t>> exact;
};

template <class T>
class Search {
 public:
  Search(const LocalRows<T>& rows, index_t n_neighbors, VectorView<index_t> neighbours,
         int n_threads)
      : rows_(rows),
        k_(n_neighbors),
        out_(neighbours),
        order_(rows.codes, rows.n_classes),
        units_(row_units(rows.references, rows.queries, rows.same, n_threads)),
        n_threads_(n_threads),
        queries_a_block_(query_block(rows.queries.rows)),
        references_a_block_(reference_block<T>(rows.references.cols)) {
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2.0;
    relative_ = static_cast<T>(unit * (static_cast<double>(d()) / 2.0 + 16.0));
    absolute_ = static_cast<T>(4 * d() + 4) * std::numeric_limits<T>::min();
  }

  void run() {
    std::fill(out_.data, out_.data + out_.size, index_t{-1});
    measure_references();
    PerThread<SearchScratch<T>> scratch(resolve_threads(n_threads_));
    for_ranges(
        rows_.queries.rows, queries_a_block_, n_threads_,
        [&](index_t begin, index_t end, int thread) { search_block(begin, end, scratch[thread]); });
  }

 private:
  index_t d() const { return rows_.references.cols; }
  index_t row_at(index_t place) const { return order_.rows[static_cast<std::size_t>(place)]; }
  T pack(const T* row, T* out) const {
    return static_cast<T>(
        std::sqrt(centre_and_scale(row, d(), units_.mean.data(), units_.scale, out)));
  }

  // Norms about the mean, in class order; base is what a lower end has besides the product.
  void measure_references() {
    const index_t n = rows_.references.rows;
    radius_.reserve(std::max<index_t>(n, 1));
    base_.reserve(std::max<index_t>(n, 1));
    PerThread<AlignedBuffer<T>> scratch(resolve_threads(n_threads_));
    for_ranges(n, 128, n_threads_, [&](index_t begin, index_t end, int thread) {
      scratch[thread].reserve(d());
      for (index_t p = begin; p < end; ++p) {
        radius_[p] = pack(rows_.references.row(row_at(p)), scratch[thread].data());
        base_[p] = radius_[p] * radius_[p] * (T(1) - relative_);
      }
    });
  }

  T width(T query_radius, index_t place) const {  // of the interval
    const T norms = query_radius + radius_[place];
    return T(2) * (relative_ * norms * norms + absolute_);
  }

  void search_block(index_t begin, index_t end, SearchScratch<T>& s) const {
    prepare(begin, end, s);
    const index_t n = rows_.references.rows, count = end - begin;
    index_t c = 0;
    for (index_t first = 0; first < n; first += references_a_block_) {
      const index_t last = std::min(first + references_a_block_, n);
      for (index_t p = first; p < last; ++p)
        pack(rows_.references.row(row_at(p)), s.references.data() + (p - first) * d());
      gemm<T>(Op::transpose, Op::none, T(1),
              column_major<const T>(s.references.data(), d(), last - first),
              column_major<const T>(s.queries.data(), d(), count), T(0),
              column_major(s.dots.data(), last - first, count));
      c = read_block(begin, count, first, last, c, s);
    }
  }

  void prepare(index_t begin, index_t end, SearchScratch<T>& s) const {
    s.queries.reserve(queries_a_block_ * d());
    s.references.reserve(references_a_block_ * d());
    s.dots.reserve(queries_a_block_ * references_a_block_);
    s.low.reserve(kScan);
    s.query_radius.resize(static_cast<std::size_t>(queries_a_block_));
    s.lists.resize(static_cast<std::size_t>(queries_a_block_));
    s.hits.resize(static_cast<std::size_t>(kScan));
    for (index_t q = 0; q < end - begin; ++q) {
      s.query_radius[static_cast<std::size_t>(q)] =
          pack(rows_.queries.row(begin + q), s.queries.data() + q * d());
    }
  }

  // Distances of a block, by class: lists of a class are started where it starts and finished where
  // it ends. Returns the class that goes on, or comes next.
  index_t read_block(index_t begin, index_t count, index_t first, index_t last, index_t c,
                     SearchScratch<T>& s) const {
    for (; c < rows_.n_classes; ++c) {
      const index_t class_begin = order_.begin[static_cast<std::size_t>(c)];
      const index_t class_end = order_.begin[static_cast<std::size_t>(c) + 1];
      if (class_begin >= last) return c;
      const index_t from = std::max(first, class_begin), to = std::min(last, class_end);
      for (index_t q = 0; q < count; ++q) {
        NearList<T>& list = s.lists[static_cast<std::size_t>(q)];
        if (from == class_begin) list.start(k_);
        scan(begin + q, q, from, to, s.dots.data() + q * (last - first) - first, s);
        if (to == class_end) finish(begin + q, q, c, s);
      }
      if (class_end > last) return c;
    }
    return c;
  }

  bool excluded(index_t query, index_t row) const {
    if (!rows_.same) return false;
    return row == query || (!rows_.groups.empty() && rows_.groups[row] == rows_.groups[query]);
  }

  // dots: by place.
  void scan(index_t query, index_t q, index_t from, index_t to, const T* dots,
            SearchScratch<T>& s) const {
    NearList<T>& list = s.lists[static_cast<std::size_t>(q)];
    const T radius = s.query_radius[static_cast<std::size_t>(q)];
    const T factor = T(2) * relative_ * radius;
    const T beyond = relative_ * radius * radius + absolute_;  // base and factor leave it out
    for (index_t p = from; p < to; p += kScan) {
      const index_t n = std::min(kScan, to - p);
      const index_t found = lows_below(dots + p, base_.data() + p, radius_.data() + p, factor, n,
                                       list.limit() + beyond, s.low.data(), s.hits.data());
      for (index_t h = 0; h < found; ++h) {
        const index_t place = p + s.hits[static_cast<std::size_t>(h)];
        if (excluded(query, row_at(place))) continue;
        const T low = s.low[s.hits[static_cast<std::size_t>(h)]] - beyond;
        list.push(low, low + width(radius, place), static_cast<std::int32_t>(place));
      }
    }
  }

  // Candidates whose intervals overlap are put in order by their exact distances.
  void finish(index_t query, index_t q, index_t c, SearchScratch<T>& s) const {
    const auto& found = s.lists[static_cast<std::size_t>(q)].finish();
    index_t* out = out_.data + (query * rows_.n_classes + c) * k_;
    const index_t n = static_cast<index_t>(found.size()), wanted = std::min(k_, n);
    index_t begin = 0;
    while (begin < wanted) {
      index_t end = begin + 1;
      T high = found[static_cast<std::size_t>(begin)].high;
      while (end < n && found[static_cast<std::size_t>(end)].low <= high) {
        high = std::max(high, found[static_cast<std::size_t>(end)].high);
        ++end;
      }
      s.exact.clear();
      for (index_t i = begin; i < end; ++i) {
        const index_t row = row_at(found[static_cast<std::size_t>(i)].place);
        const double distance = end == begin + 1
                                    ? 0.0
                                    : exact_distance(rows_.queries.row(query),
                                                     rows_.references.row(row), d(), units_.scale);
        s.exact.emplace_back(distance, row);
      }
      std::sort(s.exact.begin(), s.exact.end());
      for (index_t i = begin; i < std::min(end, wanted); ++i)
        out[i] = s.exact[static_cast<std::size_t>(i - begin)].second;
      begin = end;
    }
  }

  const LocalRows<T>& rows_;
  index_t k_;
  VectorView<index_t> out_;
  ClassOrder order_;
  RowUnits units_;
  int n_threads_;
  index_t queries_a_block_, references_a_block_;
  T relative_ = 0, absolute_ = 0;
  AlignedBuffer<T> radius_, base_;
};

}  // namespace

template <class T>
void find_local_neighbours(const LocalRows<T>& rows, index_t n_neighbors,
                           VectorView<index_t> neighbours, int n_threads) {
  const index_t n = rows.references.rows;
  require(n < std::numeric_limits<std::int32_t>::max(), "X", "fewer than 2^31 - 1 rows",
          std::to_string(n));
  require(rows.codes.size == n, "codes", std::to_string(n) + " codes, one a row",
          std::to_string(rows.codes.size));
  for (index_t i = 0; i < n; ++i) {
    require(rows.codes[i] >= 0 && rows.codes[i] < rows.n_classes, "codes",
            "class indices in [0, " + std::to_string(rows.n_classes) + ")",
            std::to_string(rows.codes[i]) + " in row " + std::to_string(i));
  }
  require(rows.queries.cols == rows.references.cols, "queries",
          std::to_string(rows.references.cols) + " columns", std::to_string(rows.queries.cols));
  require(rows.groups.empty() || (rows.same && rows.groups.size == n), "groups",
          "one a row, and no queries", std::to_string(rows.groups.size));
  require(n_neighbors >= 1, "n_neighbors", "at least 1", std::to_string(n_neighbors));
  const double work = 2.0 * static_cast<double>(rows.queries.rows) * static_cast<double>(n) *
                      static_cast<double>(rows.references.cols + 8);
  Search<T>(rows, n_neighbors, neighbours, threads_for(work, n_threads)).run();
}

template void find_local_neighbours<float>(const LocalRows<float>&, index_t, VectorView<index_t>,
                                           int);
template void find_local_neighbours<double>(const LocalRows<double>&, index_t, VectorView<index_t>,
                                            int);

}  // namespace eigenfeat
