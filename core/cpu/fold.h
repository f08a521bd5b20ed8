// The folds that reductions are made of, and the SIMD loops of each for float and double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace cresset {

/// Sum, product or extreme of values that are mapped first (absolute value, square, ...).
enum class Fold : uint8_t {
  Sum,
  NanSum,
  SumAbs,
  SumSquares,
  SumDeviations,  // of (x - center)^2
  Prod,
  Max,
  Min,
  MaxAbs,
  MinAbs,
  count
};

constexpr bool fold_is_max(Fold f) { return f == Fold::Max || f == Fold::MaxAbs; }
constexpr bool fold_is_min(Fold f) { return f == Fold::Min || f == Fold::MinAbs; }

constexpr double fold_identity(Fold f) {
  if (fold_is_max(f)) return -std::numeric_limits<double>::infinity();
  if (fold_is_min(f)) return std::numeric_limits<double>::infinity();
  return f == Fold::Prod ? 1 : 0;
}

/// Joins two partial results; extremes keep NaN.
inline double fold_merge(Fold f, double a, double b) {
  if (f == Fold::Prod) return a * b;
  if (fold_is_max(f)) return a > b || a != a ? a : b;
  if (fold_is_min(f)) return a < b || a != a ? a : b;
  return a + b;
}

inline double fold_map_scalar(Fold f, double x, double center) {
  switch (f) {
    case Fold::SumAbs:
    case Fold::MaxAbs:
    case Fold::MinAbs: return std::fabs(x);
    case Fold::SumSquares: return x * x;
    case Fold::SumDeviations: return (x - center) * (x - center);
    case Fold::NanSum: return x == x ? x : 0;
    default: return x;
  }
}

template <class T> struct FoldLoops {
  /// Folds n contiguous elements.
  double (*row)(const T* x, int64_t n, T center);
  /// acc[j] joins the fold over i < rows of x[i * stride + j], for j < cols. `center` has one
  /// value per column, or is null.
  void (*columns)(const T* x, int64_t rows, int64_t stride, int64_t cols, const T* center,
                  double* acc);
};

/// The loops of a fold for T = float or double, for the CPU that runs this.
template <class T> const FoldLoops<T>& fold_loops(Fold f);
template <> const FoldLoops<float>& fold_loops<float>(Fold f);
template <> const FoldLoops<double>& fold_loops<double>(Fold f);

}  // namespace cresset
