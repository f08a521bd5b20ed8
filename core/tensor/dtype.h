// Element types: their names and sizes, PyTorch's promotion rules, and the visit by C++ type.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/half.h"

namespace cresset {

/// In each category (integers, floats, complex) a later member holds the values of an earlier one,
/// except UInt8 next to Int8 and Float16 next to BFloat16; promotion rests on this order.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128
};
constexpr int dtype_count = 12;

/// Bytes of one element.
constexpr size_t itemsize(DType dtype) {
  constexpr uint8_t sizes[dtype_count] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(dtype)];
}

/// PyTorch's name without the module: "float32".
constexpr const char* name(DType dtype) {
  constexpr const char* names[dtype_count] = {"bool",    "uint8",   "int8",      "int16",
                                              "int32",   "int64",   "float16",   "bfloat16",
                                              "float32", "float64", "complex64", "complex128"};
  return names[static_cast<int>(dtype)];
}

/// The dtype of a PyTorch name, aliases included ("float", "long", "half", ...).
std::optional<DType> dtype_from_name(std::string_view name);

/// Writes the name.
std::ostream& operator<<(std::ostream& stream, DType dtype);

constexpr bool is_floating(DType dtype) {
  return dtype >= DType::Float16 && dtype <= DType::Float64;
}
constexpr bool is_complex(DType dtype) { return dtype >= DType::Complex64; }
constexpr bool is_integral(DType dtype, bool include_bool) {
  return dtype < DType::Float16 && (include_bool || dtype != DType::Bool);
}
constexpr bool is_signed(DType dtype) { return dtype > DType::UInt8; }

/// Type of the real part; real types stay as they are.
constexpr DType to_real(DType dtype) {
  if (dtype == DType::Complex64) return DType::Float32;
  if (dtype == DType::Complex128) return DType::Float64;
  return dtype;
}

/// Smallest complex type that holds the values; there is no complex type of 16-bit floats.
constexpr DType to_complex(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

/// The type of `a + b` for two dimensioned tensors, by PyTorch's table.
constexpr DType promote_types(DType a, DType b) {
  if (a > b) std::swap(a, b);
  if (is_complex(b) && is_floating(a)) return std::max(b, to_complex(a));
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  return b;
}

/// What kind of plain number takes part in an operation.
enum class ScalarKind : uint8_t { Bool, Int, Float, Complex };

/// Result type of mixed operands: dimensioned tensors decide over 0-d tensors, these over plain
/// numbers, unless the weaker operand is of a higher category (bool < integer < float < complex).
class PromotionState {
 public:
  constexpr void add_tensor(DType dtype, bool zero_dim) {
    add(zero_dim ? zero_dim_ : dimensioned_, dtype);
  }
  constexpr void add_scalar(ScalarKind kind) {
    if (!number_ || *number_ < kind) number_ = kind;
  }
  /// `default_dtype` is what float numbers have, and the answer when nothing was added.
  constexpr DType result(DType default_dtype) const {
    std::optional<DType> number;
    if (number_) number = number_dtype(*number_, default_dtype);
    return combine(dimensioned_, combine(zero_dim_, number)).value_or(default_dtype);
  }

 private:
  static constexpr void add(std::optional<DType>& slot, DType dtype) {
    slot = slot ? promote_types(*slot, dtype) : dtype;
  }
  static constexpr DType number_dtype(ScalarKind kind, DType default_dtype) {
    switch (kind) {
      case ScalarKind::Bool: return DType::Bool;
      case ScalarKind::Int: return DType::Int64;
      case ScalarKind::Float: return default_dtype;
      case ScalarKind::Complex: break;
    }
    return to_complex(default_dtype);
  }
  static constexpr int category(DType dtype) {
    if (dtype == DType::Bool) return 0;
    if (is_complex(dtype)) return 3;
    return is_floating(dtype) ? 2 : 1;
  }
  static constexpr std::optional<DType> combine(std::optional<DType> strong,
                                                std::optional<DType> weak) {
    if (!strong || !weak) return strong ? strong : weak;
    if (category(*weak) <= category(*strong)) return strong;
    // A float keeps its precision next to a complex number of lower priority.
    if (is_floating(*strong)) return to_complex(*strong);
    return promote_types(*strong, *weak);
  }

  std::optional<DType> dimensioned_;
  std::optional<DType> zero_dim_;
  std::optional<ScalarKind> number_;
};

/// The DType that stores elements as the C++ type `T`: `dtype_of<float>`.
template <class T>
inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "no DType"); }();
template <> inline constexpr DType dtype_of<bool> = DType::Bool;
template <> inline constexpr DType dtype_of<uint8_t> = DType::UInt8;
template <> inline constexpr DType dtype_of<int8_t> = DType::Int8;
template <> inline constexpr DType dtype_of<int16_t> = DType::Int16;
template <> inline constexpr DType dtype_of<int32_t> = DType::Int32;
template <> inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <> inline constexpr DType dtype_of<Half> = DType::Float16;
template <> inline constexpr DType dtype_of<BFloat16> = DType::BFloat16;
template <> inline constexpr DType dtype_of<float> = DType::Float32;
template <> inline constexpr DType dtype_of<double> = DType::Float64;
template <> inline constexpr DType dtype_of<std::complex<float>> = DType::Complex64;
template <> inline constexpr DType dtype_of<std::complex<double>> = DType::Complex128;

/// Calls `f.template operator()<T>()` with the storage type of `dtype` and returns its result.
template <class F> constexpr decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool: return f.template operator()<bool>();
    case DType::UInt8: return f.template operator()<uint8_t>();
    case DType::Int8: return f.template operator()<int8_t>();
    case DType::Int16: return f.template operator()<int16_t>();
    case DType::Int32: return f.template operator()<int32_t>();
    case DType::Int64: return f.template operator()<int64_t>();
    case DType::Float16: return f.template operator()<Half>();
    case DType::BFloat16: return f.template operator()<BFloat16>();
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<std::complex<float>>();
    case DType::Complex128: break;
  }
  return f.template operator()<std::complex<double>>();
}

}  // namespace cresset
