// A number that comes with an operator call: bool, integer, real or complex.
#pragma once

#include <complex>
#include <cstdint>
#include <ostream>

#include "core/tensor/dtype.h"

namespace cresset {

/// A Python-like number. Its kind takes part in type promotion, its value never does.
class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(int64_t v) : kind_(Kind::Int), int_(v) {}
  Scalar(double v) : kind_(Kind::Float), real_(v) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), real_(v.real()), imag_(v.imag()) {}

  Kind kind() const { return kind_; }
  bool is_integral() const { return kind_ <= Kind::Int; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  int64_t to_int() const { return is_integral() ? int_ : static_cast<int64_t>(real_); }
  double to_double() const { return is_integral() ? static_cast<double>(int_) : real_; }
  bool to_bool() const { return is_integral() ? int_ != 0 : real_ != 0 || imag_ != 0; }
  std::complex<double> to_complex() const { return {to_double(), imag_}; }
  bool equals(double v) const { return imag_ == 0 && to_double() == v; }

  /// The dtype of a 0-d tensor made from this number: bool, int64, or a default dtype of its kind.
  DType dtype(DType default_float = DType::Float32) const {
    switch (kind_) {
      case Kind::Bool: return DType::Bool;
      case Kind::Int: return DType::Int64;
      case Kind::Float: return default_float;
      default: return to_complex_dtype(default_float);
    }
  }

 private:
  static DType to_complex_dtype(DType f) {
    return f == DType::Float64 ? DType::Complex128 : DType::Complex64;
  }
  Kind kind_;
  union {
    int64_t int_;  ///< of Bool and Int
    double real_;  ///< of Float and Complex
  };
  double imag_ = 0;
};

inline std::ostream& operator<<(std::ostream& os, const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool: return os << (s.to_bool() ? "true" : "false");
    case Scalar::Kind::Int: return os << s.to_int();
    case Scalar::Kind::Float: return os << s.to_double();
    default: return os << s.to_complex();
  }
}

}  // namespace cresset
