// An argument that may be a tensor or a plain number.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset {

/// `Tensor|Scalar` in schemas. A number takes part in promotion by its kind only.
class Operand {
 public:
  Operand(Tensor t) : tensor_(std::move(t)) {}
  Operand(Scalar s) : scalar_(s) {}
  Operand(double v) : scalar_(v) {}
  Operand(int v) : scalar_(v) {}
  bool is_tensor() const { return tensor_.defined(); }
  const Tensor& tensor() const { return tensor_; }
  const Scalar& scalar() const { return scalar_; }
  /// The tensor, or the number as a 0-d tensor that promotes like a number.
  Tensor as_tensor() const { return is_tensor() ? tensor_ : wrapped_number(scalar_); }

 private:
  Tensor tensor_;
  Scalar scalar_;
};

using TensorList = std::vector<Tensor>;

}  // namespace cresset
