// An argument that may be a tensor or a plain number.
#pragma once

#include <array>

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

/// The inputs of one elementwise call, in order, as references: they must outlive it.
class Operands {
 public:
  Operands(const Operand& a) : list_{&a}, size_(1) {}
  Operands(const Operand& a, const Operand& b) : list_{&a, &b}, size_(2) {}
  Operands(const Operand& a, const Operand& b, const Operand& c) : list_{&a, &b, &c}, size_(3) {}
  /// Up to three operands that lie one after another.
  Operands(std::span<const Operand> in) { append(in); }
  template <size_t n> Operands(const Operand (&in)[n]) { append(in); }
  template <size_t n> Operands(const std::array<Operand, n>& in) { append(in); }
  /// `first`, then up to two more.
  Operands(const Operand& first, std::span<const Operand> rest) : Operands(first) { append(rest); }

  size_t size() const { return size_; }
  const Operand& operator[](size_t i) const { return *list_[i]; }
  std::span<const Operand* const> list() const { return {list_, size_}; }

  class Iterator {
   public:
    explicit Iterator(const Operand* const* at) : at_(at) {}
    const Operand& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Operand* const* at_;
  };
  Iterator begin() const { return Iterator(list_); }
  Iterator end() const { return Iterator(list_ + size_); }

 private:
  void append(std::span<const Operand> in) {
    ASSERT(size_ + in.size() <= 3);
    for (const Operand& o : in) list_[size_++] = &o;
  }
  const Operand* list_[3] = {};
  size_t size_ = 0;
};

using TensorList = std::vector<Tensor>;

}  // namespace cresset
