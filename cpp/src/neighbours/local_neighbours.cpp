#include <cmath>
#include <string>

#include "eigenfeat/vector.hpp"
#include "neighbours/neighbour_search.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMaxQueries = 256;               // queries of a block
constexpr index_t kMaxReferences = 512;            // references of a block
constexpr index_t kBlockBytes = index_t{1} << 24;  // bytes of a block of references

index_t query_block(index_t n) {
  return std::clamp<index_t>((n / 16 + 31) / 32 * 32, 32, kMaxQueries);
}

template <class T>
index_t reference_block(index_t d) {
  const index_t fit = kBlockBytes / (static_cast<index_t>(sizeof(T)) * std::max<index_t>(d, 1));
  return std::clamp<index_t>(fit, 64, kMaxReferences);
}

// Rounds to 40 bits, so that equal distances, as on grids and between indicators, remain equal in
// another order of the columns, or after division by deviations with different rounding errors.
double rounded(double distance) {
  int exponent = 0;
  const double fraction = std::frexp(distance, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 40)), exponent - 40);
}

}  // namespace

template <class T>
NeighbourSearch<T>::NeighbourSearch(const LocalRows<T>& rows, index_t n_neighbors,
                                    VectorView<index_t> neighbours, int n_threads)
    : rows_(rows),
      k_(n_neighbors),
      out_(neighbours),
      order_(rows.codes, rows.n_classes),
      units_(row_units(rows.references, rows.queries, rows.same, n_threads)),
      n_threads_(n_threads),
      scale_(static_cast<T>(std::min(units_.scale, 0x1p120))) {
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2.0;
  relative_ = static_cast<T>(unit * (static_cast<double>(d()) / 2.0 + 16.0));
  absolute_ = static_cast<T>(4 * d() + 4) * std::numeric_limits<T>::min();
  for (const double mean : units_.mean)
    shift_.push_back(static_cast<T>(mean * static_cast<double>(scale_)));
}

template <class T>
void NeighbourSearch<T>::run() {
  std::fill(out_.data, out_.data + out_.size, index_t{-1});
  measure_references();
  Vector<index_t> queries;
  if (mutual_pays()) {
    queries = search_mutually();
  } else {
    for (index_t i = 0; i < rows_.queries.rows; ++i) queries.push_back(i);
  }
  search_by_blocks(queries);
}

template <class T>
void NeighbourSearch<T>::prepare(SearchScratch<T>& s, index_t n_queries,
                                 index_t n_references) const {
  s.queries.reserve(n_queries * d());
  s.references.reserve(n_references * d());
  s.dots.reserve(n_queries * n_references);
  s.low.reserve(kScan);
  s.hits.resize(kScan);
  s.lists.resize(n_queries);
  s.query_radius.resize(n_queries);
}

// Norms about the mean, in class order; `base` is the part of a lower end that does not depend on
// the query.
template <class T>
void NeighbourSearch<T>::measure_references() {
  const index_t n = rows_.references.rows;
  radius_.reserve(std::max<index_t>(n, 1));
  base_.reserve(std::max<index_t>(n, 1));
  PerThread<AlignedBuffer<T>> scratch(resolve_threads(n_threads_));
  for_ranges(n, 128, n_threads_, [&](index_t begin, index_t end, int thread) {
    scratch[thread].reserve(d());
    T* row = scratch[thread].data();
    for (index_t p = begin; p < end; ++p) {
      pack(rows_.references.row(row_at(p)), row);
      radius_[p] = static_cast<T>(std::sqrt(kernels<DistanceKernels<T>>().squared_norm(row, d())));
      base_[p] = radius_[p] * radius_[p] * (T(1) - relative_);
    }
  });
}

template <class T>
void NeighbourSearch<T>::search_by_blocks(const Vector<index_t>& queries) {
  const index_t n = queries.size();
  PerThread<SearchScratch<T>> scratch(resolve_threads(n_threads_));
  for_ranges(n, query_block(n), n_threads_, [&](index_t begin, index_t end, int thread) {
    prepare(scratch[thread], query_block(n), reference_block<T>(d()));
    search_block(queries.data() + begin, end - begin, scratch[thread]);
  });
}

template <class T>
void NeighbourSearch<T>::search_block(const index_t* queries, index_t count,
                                      SearchScratch<T>& s) const {
  for (index_t q = 0; q < count; ++q) {
    T* row = s.queries.data() + q * d();
    pack(rows_.queries.row(queries[q]), row);
    s.query_radius[q] =
        static_cast<T>(std::sqrt(kernels<DistanceKernels<T>>().squared_norm(row, d())));
  }
  const index_t n = rows_.references.rows, block = reference_block<T>(d());
  index_t c = 0;
  for (index_t first = 0; first < n; first += block) {
    const index_t last = std::min(first + block, n);
    for (index_t p = first; p < last; ++p)
      pack(rows_.references.row(row_at(p)), s.references.data() + (p - first) * d());
    gemm<T>(Op::transpose, Op::none, T(1),
            column_major<const T>(s.references.data(), d(), last - first),
            column_major<const T>(s.queries.data(), d(), count), T(0),
            column_major(s.dots.data(), last - first, count));
    c = read_block(queries, count, first, last, c, s);
  }
}

// Processes the distances of a block, class by class: lists of a class are started at its first
// reference and finished at its last. Returns the class that continues, or the next class.
template <class T>
index_t NeighbourSearch<T>::read_block(const index_t* queries, index_t count, index_t first,
                                       index_t last, index_t c, SearchScratch<T>& s) const {
  for (; c < rows_.n_classes; ++c) {
    const index_t class_begin = order_.begin[c];
    const index_t class_end = order_.begin[c + 1];
    if (class_begin >= last) return c;
    const index_t from = std::max(first, class_begin), to = std::min(last, class_end);
    for (index_t q = 0; q < count; ++q) {
      NearList<T>& list = s.lists[q];
      const T radius = s.query_radius[q];
      if (from == class_begin) list.start(k_);
      scan(
          queries[q], radius, from, to, s.dots.data() + q * (last - first) - first, s,
          [&] { return list.limit(); },
          [&](T low, index_t place) {
            list.push(low, low + width(radius, place), static_cast<std::int32_t>(place));
          });
      if (to == class_end) finish(queries[q], list, c, s);
    }
    if (class_end > last) return c;
  }
  return c;
}

// Sorts candidates with overlapping intervals by their exact distances.
template <class T>
void NeighbourSearch<T>::finish(index_t query, NearList<T>& list, index_t c,
                                SearchScratch<T>& s) const {
  const auto& found = list.finish();
  index_t* out = out_.data + (query * rows_.n_classes + c) * k_;
  const index_t n = found.size(), wanted = std::min(k_, n);
  index_t begin = 0;
  while (begin < wanted) {
    index_t end = begin + 1;
    T high = found[begin].high;
    while (end < n && found[end].low <= high) {
      high = std::max(high, found[end].high);
      ++end;
    }
    s.exact.clear();
    for (index_t i = begin; i < end; ++i) {
      const index_t row = row_at(found[i].place);
      const double distance = end == begin + 1 ? 0.0
                                               : kernels<DistanceKernels<T>>().exact_distance(
                                                     rows_.queries.row(query),
                                                     rows_.references.row(row), d(), units_.scale);
      s.exact.emplace_back(rounded(distance), row);
    }
    std::sort(s.exact.begin(), s.exact.end());
    for (index_t i = begin; i < std::min(end, wanted); ++i) out[i] = s.exact[i - begin].second;
    begin = end;
  }
}

template <class T>
void find_local_neighbours(const LocalRows<T>& rows, index_t n_neighbors,
                           VectorView<index_t> neighbours, int n_threads) {
  const index_t n = rows.references.rows;
  require(n < std::numeric_limits<std::int32_t>::max(), "X", "fewer than 2^31 - 1 samples",
          std::to_string(n));
  require(rows.codes.size == n, "codes", std::to_string(n) + " codes, one per sample",
          std::to_string(rows.codes.size));
  for (index_t i = 0; i < n; ++i) {
    if (!(rows.codes[i] >= 0 && rows.codes[i] < rows.n_classes))
      refuse("codes", "class indices in [0, " + std::to_string(rows.n_classes) + ")",
             std::to_string(rows.codes[i]) + " in row " + std::to_string(i));
  }
  require(rows.queries.cols == rows.references.cols, "queries",
          std::to_string(rows.references.cols) + " columns", std::to_string(rows.queries.cols));
  require(rows.groups.empty() || (rows.same && rows.groups.size == n), "groups",
          "one per sample, and no queries", std::to_string(rows.groups.size));
  require(n_neighbors >= 1, "n_neighbors", "at least 1", std::to_string(n_neighbors));
  const double work = 2.0 * static_cast<double>(rows.queries.rows) * static_cast<double>(n) *
                      static_cast<double>(rows.references.cols + 8);
  NeighbourSearch<T>(rows, n_neighbors, neighbours, threads_for(work, n_threads)).run();
}

template class NeighbourSearch<float>;
template class NeighbourSearch<double>;
template void find_local_neighbours<float>(const LocalRows<float>&, index_t, VectorView<index_t>,
                                           int);
template void find_local_neighbours<double>(const LocalRows<double>&, index_t, VectorView<index_t>,
                                            int);

}  // namespace eigenfeat
