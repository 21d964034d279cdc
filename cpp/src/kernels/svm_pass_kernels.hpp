// Private to the multiclass SVM: scores of four dense rows at once, out (4, width), where width is k
// classes and the padding up to whole vectors.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct SvmPassKernels {
  // Whether weights sorted by feature are faster for k classes.
  bool (*is_by_feature)(index_t k);
  // From weights sorted by class: class c starts at w + c apart and is padded with zeros to whole
  // vectors. The padding of out is set to zero.
  void (*four_row_scores_by_class)(const T* x, index_t stride, index_t n, const T* w, index_t apart,
                                   index_t k, index_t width, T* out);
  // From weights sorted by feature, as in row_scores of SvmKernels.
  void (*four_row_scores_by_feature)(const T* x, index_t stride, index_t n, const T* w,
                                     index_t width, T* out);
};
EIGENFEAT_FAMILY(SvmPassKernels<float>);
EIGENFEAT_FAMILY(SvmPassKernels<double>);

}  // namespace eigenfeat
