// The SIMD loops of the folds, for every Highway target.
#include "core/cpu/fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/fold.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/fold_vec.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

template <class T, Fold f> double row_loop(const T* x, int64_t n, T center) {
  return fold_row<T, f>(x, n, center);
}
template <class T, Fold f>
void column_loop(const T* x, int64_t rows, int64_t stride, int64_t cols, const T* center,
                 double* acc) {
  fold_columns<T, f>(x, rows, stride, cols, center, acc);
}

// Indexed by Fold.
template <class T> static const FoldLoops<T>* loop_list() {
  static constexpr FoldLoops<T> list[] = {
      {row_loop<T, Fold::Sum>, column_loop<T, Fold::Sum>},
      {row_loop<T, Fold::NanSum>, column_loop<T, Fold::NanSum>},
      {row_loop<T, Fold::SumAbs>, column_loop<T, Fold::SumAbs>},
      {row_loop<T, Fold::SumSquares>, column_loop<T, Fold::SumSquares>},
      {row_loop<T, Fold::SumDeviations>, column_loop<T, Fold::SumDeviations>},
      {row_loop<T, Fold::Prod>, column_loop<T, Fold::Prod>},
      {row_loop<T, Fold::Max>, column_loop<T, Fold::Max>},
      {row_loop<T, Fold::Min>, column_loop<T, Fold::Min>},
      {row_loop<T, Fold::MaxAbs>, column_loop<T, Fold::MaxAbs>},
      {row_loop<T, Fold::MinAbs>, column_loop<T, Fold::MinAbs>},
  };
  static_assert(sizeof(list) / sizeof(list[0]) == static_cast<size_t>(Fold::count));
  return list;
}

static const FoldLoops<float>* f32_folds() { return loop_list<float>(); }
static const FoldLoops<double>* f64_folds() { return loop_list<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(f32_folds);
HWY_EXPORT(f64_folds);

template <> const FoldLoops<float>& fold_loops<float>(Fold f) {
  static const FoldLoops<float>* list = HWY_DYNAMIC_DISPATCH(f32_folds)();
  return list[static_cast<int>(f)];
}
template <> const FoldLoops<double>& fold_loops<double>(Fold f) {
  static const FoldLoops<double>* list = HWY_DYNAMIC_DISPATCH(f64_folds)();
  return list[static_cast<int>(f)];
}

}  // namespace cresset
#endif
