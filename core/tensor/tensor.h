// Storage and Tensor: reference-counted bytes, and strided views of them.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/ref.h"
#include "core/base/small_vector.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/scalar.h"

namespace cresset {

/// Reference-counted bytes on a device. `version` counts in-place writes, for autograd's checks.
class Storage final : public RefCounted {
 public:
  CRESSET_API Storage(size_t bytes, Device device);
  CRESSET_API ~Storage() override;
  /// The first byte's address on the storage's device.
  void* data() const { return data_; }
  /// What the device's allocator keeps beside the address.
  void* context() const { return context_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_; }
  void bump_version() { ++version_; }
  /// Grows the bytes, keeping the old contents (Tensor.resize_).
  void resize(size_t bytes);

 private:
  void* data_ = nullptr;
  void* context_ = nullptr;
  size_t bytes_;
  Device device_;
  uint32_t version_ = 0;
};

struct AutogradMeta;

/// The object behind a Tensor handle: a view of a storage and its autograd state.
class TensorImpl final : public RefCounted {
 public:
  CRESSET_API TensorImpl(Ref<Storage> storage, Dims sizes, Dims strides, int64_t offset,
                         DType dtype);
  /// Row-major from the storage's start on.
  TensorImpl(Ref<Storage> storage, std::span<const int64_t> sizes, DType dtype);
  CRESSET_API ~TensorImpl() override;
  /// Recomputes numel and contiguity after a change of geometry.
  CRESSET_API void refresh();

  Ref<Storage> storage;
  Dims sizes, strides;
  int64_t offset;  ///< in elements
  int64_t numel = 0;
  DType dtype;
  bool contiguous = false;
  bool wrapped_number = false;  ///< made from a plain number: promotes like one
  AutogradMeta* autograd = nullptr;
};

/// Throws NotImplemented: code of the CPU was about to touch memory of `device`.
[[noreturn]] CRESSET_API void refuse_host_access(Device device);

/// A handle to a tensor, cheap to copy; undefined when default-constructed.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }

  const Dims& sizes() const { return impl_->sizes; }
  const Dims& strides() const { return impl_->strides; }
  int64_t dim() const { return static_cast<int64_t>(impl_->sizes.size()); }
  int64_t size(int64_t d) const { return impl_->sizes[d < 0 ? d + dim() : d]; }
  int64_t stride(int64_t d) const { return impl_->strides[d < 0 ? d + dim() : d]; }
  int64_t numel() const { return impl_->numel; }
  int64_t offset() const { return impl_->offset; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->storage->device(); }
  Storage& storage() const { return *impl_->storage; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool is_meta() const { return device().is_meta(); }
  bool is_complex() const { return cresset::is_complex(dtype()); }
  bool is_floating() const { return cresset::is_floating(dtype()); }
  bool is_wrapped_number() const { return impl_->wrapped_number; }
  uint32_t version() const { return impl_->storage->version(); }
  void bump_version() const { impl_->storage->bump_version(); }

  /// First element, for code that runs on the CPU: a tensor of another device is refused, never
  /// dereferenced. T must be the storage type of dtype().
  template <class T = void> T* data() const {
    if (device().is_cuda()) [[unlikely]]
      refuse_host_access(device());
    return device_data<T>();
  }
  /// The first element's address on the tensor's own device.
  template <class T = void> T* device_data() const {
    return reinterpret_cast<T*>(static_cast<char*>(impl_->storage->data()) +
                                impl_->offset * static_cast<int64_t>(itemsize(dtype())));
  }

  CRESSET_API bool requires_grad() const;
  CRESSET_API void set_requires_grad(bool on) const;
  bool same(const Tensor& o) const { return impl_ == o.impl_; }

 private:
  Ref<TensorImpl> impl_;
};

/// Dtype and device of a new tensor.
struct Options {
  DType dtype = DType::Float32;
  Device device = {};
};
inline Options options_of(const Tensor& t) { return {t.dtype(), t.device()}; }

#pragma GCC visibility push(default)

/// Row-major strides of `sizes`. Throws Value when the element count overflows.
Dims contiguous_strides(std::span<const int64_t> sizes);
/// Product of sizes, checked: negative sizes and overflow are errors that name `op`.
int64_t checked_numel(const char* op, std::span<const int64_t> sizes);

/// Uninitialised tensors.
Tensor empty(std::span<const int64_t> sizes, Options options, const char* op = "empty");
Tensor empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                     Options options, const char* op = "empty_strided");
/// Same geometry as `t` when it is dense and does not overlap, else contiguous.
Tensor empty_like(const Tensor& t);
Tensor empty_like(const Tensor& t, DType dtype);

/// A new tensor object over the same storage, without autograd state.
Tensor alias(const Tensor& t, Dims sizes, Dims strides, int64_t offset);
Tensor alias(const Tensor& t);

/// A 0-d tensor of a plain number that promotes like one.
Tensor wrapped_number(const Scalar& s);

/// Whether the elements fill a block of memory without gaps or overlap, in some order.
bool is_dense(const Tensor& t);
/// Whether two different indices may address the same element (expanded or unknown overlap).
bool may_overlap_itself(const Tensor& t);

/// dim in [-n, n) to [0, n); a 0-d tensor accepts -1 and 0. Throws IndexError naming `op`.
int64_t wrap_dim(const char* op, int64_t dim, int64_t n);
/// Sorted, unique, wrapped dims; an empty list means all when `empty_is_all`.
Dims wrap_dims(const char* op, std::span<const int64_t> dims, int64_t n, bool empty_is_all);

/// The default floating dtype (torch.set_default_dtype) of this thread.
DType default_dtype();
void set_default_dtype(DType dtype);

#pragma GCC visibility pop

}  // namespace cresset
