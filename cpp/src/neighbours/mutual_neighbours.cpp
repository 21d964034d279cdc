#include <mutex>

#include "eigenfeat/vector.hpp"
#include "neighbours/neighbour_search.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTile = 256;                     // rows of a tile
constexpr index_t kListBytes = index_t{96} << 20;  // memory for the candidates of all queries

// Pair b of the n / 2 disjoint pairs in round r of a tournament of n players, n even (circle method).
std::pair<index_t, index_t> tournament_pair(index_t n, index_t r, index_t b) {
  if (b == 0) return {n - 1, r};
  return {(r + b) % (n - 1), (r - b + n - 1) % (n - 1)};
}

template <class T>
void transpose(const T* __restrict from, index_t rows, index_t cols, T* __restrict to) {
  constexpr index_t piece = 16;
  for (index_t j = 0; j < cols; j += piece) {
    const index_t j_end = std::min(j + piece, cols);
    for (index_t i = 0; i < rows; i += piece) {
      const index_t i_end = std::min(i + piece, rows);
      for (index_t b = j; b < j_end; ++b) {
        for (index_t a = i; a < i_end; ++a) to[a * cols + b] = from[b * rows + a];
      }
    }
  }
}

}  // namespace

// Whether products take most of the time, and the lists of all rows fit into memory.
template <class T>
bool NeighbourSearch<T>::mutual_pays() const {
  const index_t n = rows_.references.rows;
  const index_t per_row = rows_.n_classes * CandidateLists<T>::capacity_for(k_) *
                          static_cast<index_t>(sizeof(typename CandidateLists<T>::Entry));
  return rows_.same && d() >= 64 && n >= 4 * kTile && d() <= 1 << 15 && per_row <= kListBytes / n;
}

template <class T>
Vector<index_t> NeighbourSearch<T>::search_mutually() {
  const index_t n = rows_.references.rows, tiles = (n + kTile - 1) / kTile;
  CandidateLists<T> lists(n * rows_.n_classes, k_);
  PerThread<SearchScratch<T>> scratch(resolve_threads(n_threads_));
  // One thread at a time writes to the lists of a tile; results do not depend on the order. Pairs
  // of tiles are scheduled in the rounds of a tournament, so that concurrent tasks mostly have no
  // common tile. The first round pairs each tile with itself. With an odd number of tiles, one tile
  // pauses in each round.
  Vector<std::mutex> locks(tiles);
  const index_t players = tiles + tiles % 2, pairs = players / 2 * (players - 1);
  for_blocks(tiles + pairs, n_threads_, [&](index_t b, int thread) {
    std::pair<index_t, index_t> pair{b, b};
    if (b >= tiles) {
      const index_t at = b - tiles;
      pair = tournament_pair(players, at / (players / 2), at % (players / 2));
    }
    if (pair.first >= tiles || pair.second >= tiles) return;
    SearchScratch<T>& s = scratch[thread];
    prepare(s, kTile, kTile);
    s.transposed.reserve(kTile * kTile);
    multiply_tiles(pair.first, pair.second, s);
    {
      const std::lock_guard<std::mutex> lock(locks[pair.second]);
      read_tile(pair.second, pair.first, s.dots.data(), lists, s);
    }
    if (pair.first == pair.second) return;
    const std::lock_guard<std::mutex> lock(locks[pair.first]);
    read_tile(pair.first, pair.second, s.transposed.data(), lists, s);
  });
  Vector<char> overflowed(n, 0);
  for_ranges(n, 32, n_threads_, [&](index_t begin, index_t end, int thread) {
    prepare(scratch[thread], 1, 1);
    for (index_t p = begin; p < end; ++p)
      overflowed[p] = finish_row(p, lists, scratch[thread]) ? 0 : 1;
  });
  Vector<index_t> again;
  for (index_t p = 0; p < n; ++p) {
    if (overflowed[p] != 0) again.push_back(row_at(p));
  }
  return again;
}

// dots has a column for each query of tile j; transposed has a column for each query of tile i.
template <class T>
void NeighbourSearch<T>::multiply_tiles(index_t i, index_t j, SearchScratch<T>& s) const {
  const index_t n = rows_.references.rows;
  const index_t i0 = i * kTile, n_i = std::min(kTile, n - i0);
  const index_t j0 = j * kTile, n_j = std::min(kTile, n - j0);
  for (index_t p = 0; p < n_i; ++p)
    pack(rows_.references.row(row_at(i0 + p)), s.references.data() + p * d());
  const T* other = s.references.data();
  if (i != j) {
    for (index_t p = 0; p < n_j; ++p)
      pack(rows_.references.row(row_at(j0 + p)), s.queries.data() + p * d());
    other = s.queries.data();
  }
  gemm<T>(Op::transpose, Op::none, T(1), column_major<const T>(s.references.data(), d(), n_i),
          column_major<const T>(other, d(), n_j), T(0), column_major(s.dots.data(), n_i, n_j));
  if (i != j) transpose(s.dots.data(), n_i, n_j, s.transposed.data());
}

// Processes the products of a tile of queries and a tile of references, query by query.
template <class T>
void NeighbourSearch<T>::read_tile(index_t queries, index_t references, const T* dots,
                                   CandidateLists<T>& lists, SearchScratch<T>& s) const {
  const index_t n = rows_.references.rows;
  const index_t first = references * kTile, last = std::min(first + kTile, n);
  const index_t q0 = queries * kTile, q1 = std::min(q0 + kTile, n);
  index_t from = first;
  for (index_t c = rows_.codes[row_at(first)]; from < last; ++c) {
    const index_t to = std::min(last, order_.begin[c + 1]);
    for (index_t q = q0; q < q1 && from < to; ++q) {
      const index_t list = q * rows_.n_classes + c;
      if (lists.counts[list] < 0) continue;
      scan(
          row_at(q), radius_[q], from, to, dots + (q - q0) * (last - first) - first, s,
          [&] { return lists.limits[list]; },
          [&](T low, index_t place) { add_candidate(q, c, low, place, lists, s); });
    }
    from = std::max(from, to);
  }
}

template <class T>
void NeighbourSearch<T>::add_candidate(index_t query_place, index_t c, T low, index_t place,
                                       CandidateLists<T>& lists, SearchScratch<T>& s) const {
  const index_t at = query_place * rows_.n_classes + c;
  std::int32_t& count = lists.counts[at];
  if (count < 0) return;
  typename CandidateLists<T>::Entry* entries = lists.entries.data() + at * lists.capacity;
  entries[count++] = {low, static_cast<std::int32_t>(place)};
  if (count < lists.capacity) return;
  auto& ends = s.ends;
  ends.clear();
  for (index_t e = 0; e < count; ++e)
    ends.push_back(entries[e].low + width(radius_[query_place], entries[e].place));
  const auto kth = ends.begin() + (k_ - 1);
  std::nth_element(ends.begin(), kth, ends.end());
  const T limit = *kth;
  lists.limits[at] = limit;
  const auto* kept =
      std::remove_if(entries, entries + count, [&](const auto& e) { return e.low > limit; });
  count = static_cast<std::int32_t>(kept - entries);
  if (count == lists.capacity) count = -1;
}

// Returns false if a list has overflowed.
template <class T>
bool NeighbourSearch<T>::finish_row(index_t place, const CandidateLists<T>& lists,
                                    SearchScratch<T>& s) const {
  const index_t first = place * rows_.n_classes;
  for (index_t c = 0; c < rows_.n_classes; ++c) {
    if (lists.counts[first + c] < 0) return false;
  }
  for (index_t c = 0; c < rows_.n_classes; ++c) {
    const auto* entries = lists.entries.data() + (first + c) * lists.capacity;
    NearList<T>& list = s.lists.front();
    list.start(k_);
    for (index_t e = 0; e < lists.counts[first + c]; ++e)
      list.push(entries[e].low, entries[e].low + width(radius_[place], entries[e].place),
                entries[e].place);
    finish(row_at(place), list, c, s);
  }
  return true;
}

template class NeighbourSearch<float>;
template class NeighbourSearch<double>;

}  // namespace eigenfeat
