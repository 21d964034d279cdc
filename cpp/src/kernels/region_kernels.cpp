#include "kernels/region_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

using V = Vec<double>;
constexpr index_t kLanes = kLane<double>;  // partial sums of a sum
constexpr index_t kVectors = kPerLine;

// The vectors of a line.
struct Line {
  V v[kVectors];
};

EIGENFEAT_INLINE Line load_line(const double* p) {
  Line line;
  __builtin_memcpy(&line, p, sizeof line);
  return line;
}

// The numbers of an incomplete last line, filled up with `filler`.
EIGENFEAT_INLINE Line load_tail(const double* p, index_t n, double filler) {
  double numbers[kLanes];
  for (index_t i = 0; i < kLanes; ++i) numbers[i] = i < n ? p[i] : filler;
  return load_line(numbers);
}

EIGENFEAT_INLINE double total(const Line& line) {
  double numbers[kLanes];
  __builtin_memcpy(numbers, &line, sizeof numbers);
  return sum_of_line(numbers);
}

EIGENFEAT_INLINE double lowest(const Line& line) {
  double numbers[kLanes];
  __builtin_memcpy(numbers, &line, sizeof numbers);
  double result = numbers[0];
  for (index_t i = 1; i < kLanes; ++i) result = numbers[i] < result ? numbers[i] : result;
  return result;
}

EIGENFEAT_INLINE double highest(const Line& line) {
  double numbers[kLanes];
  __builtin_memcpy(numbers, &line, sizeof numbers);
  double result = numbers[0];
  for (index_t i = 1; i < kLanes; ++i) result = numbers[i] > result ? numbers[i] : result;
  return result;
}

struct SecularLines {
  Line first{}, second{}, third{};

  EIGENFEAT_INLINE void add(const Line& a, const Line& g, double low, double shift) {
    for (index_t k = 0; k < kVectors; ++k) {
      const V inverse = 1.0 / ((a.v[k] - low) + shift);
      const V x = g.v[k] * inverse, square = x * x;
      first.v[k] += g.v[k] * x;
      second.v[k] += square;
      third.v[k] += square * inverse;
    }
  }
};

SecularSums secular_sums(const double* a, const double* g, index_t n, double low, double shift) {
  SecularLines sums;
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums.add(load_line(a + i), load_line(g + i), low, shift);
  if (i < n) sums.add(load_tail(a + i, n - i, low + 1.0), load_tail(g + i, n - i, 0.0), low, shift);
  return {total(sums.first), total(sums.second), total(sums.third)};
}

struct SurveyLines {
  Line low, size{}, steepest{}, gradient{}, bend{};

  EIGENFEAT_INLINE void add(const Line& of_a, const Line& of_g) {
    for (index_t k = 0; k < kVectors; ++k) {
      const V a = of_a.v[k], g = of_g.v[k], square = g * g;
      const V curvature = a < 0.0 ? -a : a, slope = g < 0.0 ? -g : g;
      low.v[k] = a < low.v[k] ? a : low.v[k];
      size.v[k] = curvature > size.v[k] ? curvature : size.v[k];
      steepest.v[k] = slope > steepest.v[k] ? slope : steepest.v[k];
      gradient.v[k] += square;
      bend.v[k] += a * square;
    }
  }
};

Survey survey(const double* a, const double* g, index_t n) {
  SurveyLines lines;
  for (index_t k = 0; k < kVectors; ++k) lines.low.v[k] = V{} + __builtin_inf();
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) lines.add(load_line(a + i), load_line(g + i));
  if (i < n) lines.add(load_tail(a + i, n - i, a[i]), load_tail(g + i, n - i, 0.0));
  return {lowest(lines.low), highest(lines.size), highest(lines.steepest), total(lines.gradient),
          total(lines.bend)};
}

void definite_at(const double* diagonal, const double* off, index_t n, double tiny,
                 const double* shifts, int* definite) {
  const Line shift = load_line(shifts);
  Line pivot, smallest;
  for (index_t k = 0; k < kVectors; ++k) pivot.v[k] = smallest.v[k] = diagonal[0] - shift.v[k];
  for (index_t i = 1; i < n; ++i) {
    const double square = off[i - 1] * off[i - 1];
    for (index_t k = 0; k < kVectors; ++k) {
      V p = pivot.v[k];
      const V size = p < 0.0 ? -p : p;
      p = size < tiny ? V{} - tiny : p;
      smallest.v[k] = p < smallest.v[k] ? p : smallest.v[k];
      pivot.v[k] = (diagonal[i] - shift.v[k]) - square / p;
    }
  }
  double least_pivots[kLanes];
  for (index_t k = 0; k < kVectors; ++k) {
    const V p = pivot.v[k];
    store<double>(p < smallest.v[k] ? p : smallest.v[k], least_pivots + k * kWidth<double>);
  }
  for (index_t k = 0; k < kLanes; ++k) definite[k] = least_pivots[k] < 0.0 ? 0 : 1;
}

// Distance of a coordinate of the minimiser from the centre of the box.
EIGENFEAT_INLINE double reach(double a, double g, double w) {
  const double vertex = magnitude(g) / a;
  return a > 0.0 && vertex < w ? vertex : w;
}

double box_fall(const double* curvatures, const double* slopes, double half_width, index_t n) {
  double sums[kLanes] = {};
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (index_t k = 0; k < kLanes; ++k) {
      const double a = curvatures[i + k], g = slopes[i + k];
      const double t = reach(a, g, half_width);
      sums[k] += t * (2.0 * magnitude(g) - a * t);
    }
  }
  for (index_t k = 0; i < n; ++i, ++k) {
    const double t = reach(curvatures[i], slopes[i], half_width);
    sums[k] += t * (2.0 * magnitude(slopes[i]) - curvatures[i] * t);
  }
  return sum_of_line(sums);
}

SumAndSize dot_and_size(const double* a, const double* b, index_t n) {
  double value[kLanes] = {}, sizes[kLanes] = {};
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (index_t k = 0; k < kLanes; ++k) {
      const double term = a[i + k] * b[i + k];
      value[k] += term;
      sizes[k] += magnitude(term);
    }
  }
  for (index_t k = 0; i < n; ++i, ++k) {
    const double term = a[i] * b[i];
    value[k] += term;
    sizes[k] += magnitude(term);
  }
  SumAndSize sum;
  for (index_t k = 0; k < kLanes; ++k) {
    sum.value += value[k];
    sum.magnitude += sizes[k];
  }
  return sum;
}

double weighted_square(const double* precision, const double* x, const double* centre, index_t n) {
  double sums[kLanes] = {};
  index_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (index_t k = 0; k < kLanes; ++k) {
      const double from = x[i + k] - centre[i + k];
      sums[k] += precision[i + k] * from * from;
    }
  }
  for (index_t k = 0; i < n; ++i, ++k) {
    const double from = x[i] - centre[i];
    sums[k] += precision[i] * from * from;
  }
  double sum = 0.0;
  for (const double part : sums) sum += part;
  return sum;
}

void quadratic_difference(const QuadraticPair& pair, const double* __restrict x,
                          const double* __restrict width, index_t n, double* __restrict a,
                          double* __restrict g, double* __restrict spread,
                          double* __restrict steepness) {
  const double* __restrict pc = pair.precision_c, * __restrict mc = pair.mean_c;
  const double* __restrict ph = pair.precision_h, * __restrict mh = pair.mean_h;
  for (index_t i = 0; i < n; ++i) {
    const double w = width[i], square = w * w;
    const double c = pc[i] * (x[i] - mc[i]), h = ph[i] * (x[i] - mh[i]);
    a[i] = square * (ph[i] - pc[i]);
    g[i] = w * (h - c);
    spread[i] = (square + kUnderflowAllowance) * (ph[i] + pc[i]) + kUnderflowAllowance;
    steepness[i] = (w + kUnderflowAllowance) * (magnitude(h) + magnitude(c) + kUnderflowAllowance) +
                   kUnderflowAllowance;
  }
}

void add_linear_difference(const double* bc, const double* bh, const double* width, index_t n,
                           double* g, double* steepness) {
  for (index_t i = 0; i < n; ++i) {
    g[i] += 0.5 * width[i] * (bc[i] - bh[i]);
    steepness[i] += 0.5 * width[i] * (magnitude(bc[i]) + magnitude(bh[i]));
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(RegionKernels) = [] {
  RegionKernels table{};
  table.secular_sums = EIGENFEAT_TIER::secular_sums;
  table.survey = EIGENFEAT_TIER::survey;
  table.definite_at = EIGENFEAT_TIER::definite_at;
  table.box_fall = EIGENFEAT_TIER::box_fall;
  table.dot_and_size = EIGENFEAT_TIER::dot_and_size;
  table.weighted_square = EIGENFEAT_TIER::weighted_square;
  table.quadratic_difference = EIGENFEAT_TIER::quadratic_difference;
  table.add_linear_difference = EIGENFEAT_TIER::add_linear_difference;
  return table;
}();

}  // namespace eigenfeat
