// The frame: the array of doubles through which a call's arguments and results pass.
#pragma once

#include <bit>
#include <string>
#include <tuple>

#include "core/dispatch/handles.h"
#include "core/ops/operand.h"

namespace cresset {

/// Reads the arguments of one call in order, then writes its results from the start.
///
/// Note [Frame encoding] One or more doubles per value, by schema type:
///   Tensor: id.  Tensor?: id or -1.  int: value.  float: value.  bool: 0 or 1.
///   Scalar and Tensor|Scalar: kind, a, b with kind 0 none, 1 tensor (a = id), 2 bool, 3 int,
///     4 float, 5 complex (a, b), 6 int beyond 2^53 (a = high 32 bits, b = low 32 bits).
///   int?, float?: has, value.  bool?: -1, 0 or 1.  ScalarType, Device, enumerations: number, with
///     -1 for none (a device is type * 256 + index).  Lists: length (-1 for none), then elements.
///   str: length, then char codes.
/// Results: the count (of tensors, or of numbers), then ids, or numbers encoded as Scalars.
class Frame {
 public:
  Frame(double* slots, HandleTable& handles, const char* op)
      : slots_(slots), handles_(handles), op_(op) {}

  double next() { return slots_[at_++]; }
  const char* op() const { return op_; }

  Tensor tensor() { return tensor_of(next()); }
  Tensor tensor_of(double id) {
    const Tensor* t = id >= 0 ? handles_.find(HandleTable::id_from(id)) : nullptr;
    CHECK(t, Value, op_, ": a tensor argument has been freed: it was disposed, or made inside a ",
          "tidy that has ended; return it from the tidy or keep() it");
    if (!any_) {
      any_ = true;
      device_ = t->device();
      number_ = t->dim() == 0;
    } else if (!(t->device() == device_)) [[unlikely]] {
      mix_devices(*t);
    } else {
      number_ = number_ && t->dim() == 0;
    }
    return *t;
  }
  /// `kind` stays a double: to compare it costs less than to convert it.
  Scalar scalar_of(double kind, double a, double b) {
    if (kind == 3) return Scalar(static_cast<int64_t>(a));
    if (kind == 4) return Scalar(a);
    if (kind == 2) return Scalar(a != 0);
    if (kind == 5) return Scalar(std::complex<double>(a, b));
    uint64_t bits = static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int64_t>(a))) << 32 |
                    static_cast<uint32_t>(static_cast<int64_t>(b));
    return Scalar(std::bit_cast<int64_t>(bits));
  }

  void begin_results(size_t count) {
    at_ = 0;
    put(static_cast<double>(count));
  }
  void put(double v) { slots_[at_++] = v; }
  void put_tensor(Tensor t) {
    put(t.defined() ? static_cast<double>(handles_.add(std::move(t))) : -1);
  }
  void put_scalar(const Scalar& s);

 private:
  double* slots_;
  HandleTable& handles_;
  const char* op_;
  uint32_t at_ = 0;
  // The device of the tensors so far, and whether all of them had no dims.
  Device device_;
  bool any_ = false, number_ = false;

  /// A second device: throws, unless a number of the CPU or the operator allows it.
  void mix_devices(const Tensor& t);
};

/// Doubles that every host's frame has at least; longer argument lists make the host grow it.
constexpr size_t frame_capacity = 4096;

}  // namespace cresset
