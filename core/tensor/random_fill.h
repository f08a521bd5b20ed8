// What the distributions share: the loop over elements and the visit by kind of element type.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <mutex>
#include <type_traits>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "core/tensor/generator.h"

namespace cresset::detail {

using GeneratorLock = std::lock_guard<std::mutex>;

template <class T>
concept FloatElement = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Half> ||
    std::same_as<T, BFloat16>;
template <class T>
concept RealElement = FloatElement<T> || std::integral<T>;

/// Float for the 16-bit types, T itself otherwise.
template <FloatElement T> using Compute = std::conditional_t<(sizeof(T) < 4), float, T>;

template <class T, class Draw> void fill(T* out, int64_t n, Draw draw) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(draw());
}

/// -log(1 - u) / lambda, always computed in double.
template <FloatElement T> void exponential(Generator& generator, T* out, int64_t n, double lambda) {
  const double scale = -1.0 / lambda;
  fill(out, n, [&] { return scale * std::log1p(-generator.uniform_double()); });
}

/// Calls f.template operator()<T>() for a float dtype.
template <class F> void visit_float(const char* op, DType dtype, F&& f) {
  CHECK(is_floating(dtype), DType, op, ": expected a floating-point dtype, got ", dtype);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (FloatElement<T>) f.template operator()<T>();
  });
}

/// Calls f.template operator()<T>() for any dtype but a complex one.
template <class F> void visit_real(const char* op, DType dtype, F&& f) {
  CHECK(!is_complex(dtype), DType, op, ": expected a real dtype, got ", dtype);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (RealElement<T>) f.template operator()<T>();
  });
}

/// Calls f.template operator()<T>() for an integer or float dtype.
template <class F> void visit_number(const char* op, DType dtype, F&& f) {
  CHECK(dtype != DType::Bool, DType, op, ": expected an integer or floating-point dtype, got ",
        dtype);
  visit_real(op, dtype, [&]<class T>() {
    if constexpr (!std::same_as<T, bool>) f.template operator()<T>();
  });
}

}  // namespace cresset::detail
