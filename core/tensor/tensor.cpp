// Geometry, allocation and handles of tensors.
#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/autograd/meta.h"
#include "core/tensor/allocator.h"
#include "core/tensor/cuda_services.h"
#include "core/tensor/device_runtime.h"

namespace cresset {

Storage::Storage(size_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (device == pinned_cpu) {
    device_ = Device();
    data_ = cuda_services().allocate_pinned(bytes, &context_);
  } else if (device.is_cpu()) {
    data_ = cpu_allocate(bytes);
  } else if (device.is_cuda()) {
    device_ = resolve_device(device);
    data_ = cuda_runtime().allocate(bytes, device_, &context_);
    cuda_count_bytes(device_, static_cast<int64_t>(bytes));
  }
}

namespace {

// Memory of a GPU, and pinned memory of the CPU, has a context.
void free_memory(void* data, void* context, size_t bytes, Device device) {
  if (context)
    opened_cuda_runtime->free(data, context, device);
  else if (device.is_cpu())
    cpu_free(data, bytes);
}

}  // namespace

Storage::~Storage() {
  free_memory(data_, context_, bytes_, device_);
  if (device_.is_cuda()) cuda_count_bytes(device_, -static_cast<int64_t>(bytes_));
}

// Pinned memory that grows becomes pageable.
void Storage::resize(size_t bytes) {
  if (bytes <= bytes_) return;
  void *grown = nullptr, *context = nullptr;
  if (device_.is_cuda()) {
    DeviceRuntime& runtime = cuda_runtime();
    grown = runtime.allocate(bytes, device_, &context);
    if (bytes_) runtime.copy(grown, device_, data_, device_, bytes_, false);
    cuda_count_bytes(device_, static_cast<int64_t>(bytes - bytes_));
  } else if (device_.is_cpu()) {
    wait_for_copies(*this);
    grown = cpu_allocate(bytes);
    if (bytes_) std::memcpy(grown, data_, bytes_);
  }
  free_memory(data_, context_, bytes_, device_);
  data_ = grown;
  context_ = context;
  bytes_ = bytes;
}

void refuse_host_access(Device device) {
  fail(ErrorKind::NotImplemented, "no kernel for device ", device);
}

TensorImpl::TensorImpl(Ref<Storage> s, Dims sz, Dims st, int64_t off, DType dt)
    : storage(std::move(s)), sizes(std::move(sz)), strides(std::move(st)), offset(off), dtype(dt) {
  refresh();
}

TensorImpl::TensorImpl(Ref<Storage> s, std::span<const int64_t> sz, DType dt)
    : storage(std::move(s)), offset(0), numel(1), dtype(dt), contiguous(true) {
  sizes.resize_for_overwrite(sz.size());
  strides.resize_for_overwrite(sz.size());
  int64_t step = 1;
  for (size_t i = sz.size(); i-- > 0;) {
    sizes[i] = sz[i];
    strides[i] = step;
    step *= std::max<int64_t>(sz[i], 1);
    numel *= sz[i];
  }
}

TensorImpl::~TensorImpl() { delete autograd; }

void TensorImpl::refresh() {
  numel = 1;
  contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != numel) contiguous = false;
    numel *= sizes[i];
  }
  if (numel == 0) contiguous = true;
}

int64_t checked_numel(const char* op, std::span<const int64_t> sizes) {
  // The product without regard to zeros, in floating point: exact as far as it is allowed.
  constexpr double most = static_cast<double>(int64_t{1} << 53);
  int64_t n = 1;
  double count = 1;
  for (int64_t s : sizes) {
    CHECK(s >= 0, Value, op, ": expected sizes that are not negative, got ", sizes);
    count *= static_cast<double>(std::max<int64_t>(s, 1));
    CHECK(count < most, Value, op, ": size ", sizes, " has too many elements");
    n *= s;
  }
  return n;
}

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

/// Bytes as this machine counts them: no 32-bit machine can hold more than 4 GiB. Tensors without
/// data may be of any size.
static size_t byte_count(int64_t elements, Options o) {
  uint64_t bytes = static_cast<uint64_t>(elements) * itemsize(o.dtype);
  if (bytes <= std::numeric_limits<size_t>::max()) return static_cast<size_t>(bytes);
  CHECK(!o.device.is_cpu(), OutOfMemory, "cpu: tried to allocate ", bytes,
        " bytes, more than can be addressed");
  return std::numeric_limits<size_t>::max();
}

Tensor empty(std::span<const int64_t> sizes, Options o, const char* op) {
  int64_t n = checked_numel(op, sizes);
  auto storage = make_ref<Storage>(byte_count(n, o), o.device);
  return Tensor(make_ref<TensorImpl>(std::move(storage), sizes, o.dtype));
}

Tensor empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, Options o,
                     const char* op) {
  CHECK(sizes.size() == strides.size(), Shape, op, ": expected as many strides as sizes, got ",
        sizes, " and ", strides);
  int64_t n = checked_numel(op, sizes), last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(strides[i] >= 0, Value, op, ": expected strides that are not negative, got ", strides);
    int64_t reach = 0;
    bool overflow = n && __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach);
    CHECK(!overflow && !__builtin_add_overflow(last, reach, &last) && last < (int64_t{1} << 56),
          Value, op, ": strides ", strides, " reach too far");
  }
  size_t bytes = n ? byte_count(last + 1, o) : 0;
  auto storage = make_ref<Storage>(bytes, o.device);
  return Tensor(make_ref<TensorImpl>(std::move(storage), Dims(sizes), Dims(strides), 0, o.dtype));
}

Tensor empty_like(const Tensor& t) { return empty_like(t, t.dtype()); }

Tensor empty_like(const Tensor& t, DType dtype) {
  Options o{dtype, t.device()};
  if (t.is_contiguous() || !is_dense(t)) return empty(t.sizes(), o);
  return empty_strided(t.sizes(), t.strides(), o);
}

Tensor alias(const Tensor& t, Dims sizes, Dims strides, int64_t offset) {
  return Tensor(make_ref<TensorImpl>(t.impl()->storage, std::move(sizes), std::move(strides),
                                     offset, t.dtype()));
}

Tensor alias(const Tensor& t) { return alias(t, t.sizes(), t.strides(), t.offset()); }

Tensor wrapped_number(const Scalar& s) {
  DType dtype = s.kind() == Scalar::Kind::Float     ? DType::Float64
                : s.kind() == Scalar::Kind::Complex ? DType::Complex128
                                                    : s.dtype();
  Tensor t = empty({}, {dtype, {}});
  switch (s.kind()) {
    case Scalar::Kind::Bool: *t.data<bool>() = s.to_bool(); break;
    case Scalar::Kind::Int: *t.data<int64_t>() = s.to_int(); break;
    case Scalar::Kind::Float: *t.data<double>() = s.to_double(); break;
    case Scalar::Kind::Complex: *t.data<std::complex<double>>() = s.to_complex(); break;
  }
  t.impl()->wrapped_number = true;
  return t;
}

namespace {

// Dims longer than 1, ordered by falling stride.
Dims order_by_stride(const Tensor& t) {
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  return order;
}

}  // namespace

bool is_dense(const Tensor& t) {
  if (t.is_contiguous()) return true;
  int64_t expected = 1;
  Dims order = order_by_stride(t);
  for (size_t i = order.size(); i-- > 0;) {
    if (t.stride(order[i]) != expected) return false;
    expected *= t.size(order[i]);
  }
  return true;
}

bool may_overlap_itself(const Tensor& t) {
  if (t.is_contiguous()) return false;
  int64_t reach = 0;
  Dims order = order_by_stride(t);
  for (size_t i = order.size(); i-- > 0;) {
    if (t.stride(order[i]) <= reach) return true;
    reach += (t.size(order[i]) - 1) * t.stride(order[i]);
  }
  return false;
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t n) {
  int64_t m = std::max<int64_t>(n, 1);
  CHECK(dim >= -m && dim < m, Index, op, ": expected dim in [", -m, ", ", m - 1, "], got ", dim);
  return dim < 0 ? dim + m : dim;
}

Dims wrap_dims(const char* op, std::span<const int64_t> dims, int64_t n, bool empty_is_all) {
  Dims out;
  if (dims.empty() && empty_is_all) {
    out.resize(static_cast<size_t>(n));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  for (int64_t d : dims) out.push_back(wrap_dim(op, d, n));
  std::sort(out.begin(), out.end());
  bool repeated = std::adjacent_find(out.begin(), out.end()) != out.end();
  CHECK(!repeated, Value, op, ": a dim appears twice in ", dims);
  return out;
}

namespace {
thread_local DType default_dtype_ = DType::Float32;
}

DType default_dtype() { return default_dtype_; }

void set_default_dtype(DType dtype) {
  CHECK(is_floating(dtype), DType, "setDefaultDtype: expected a floating dtype, got ", dtype);
  default_dtype_ = dtype;
}

}  // namespace cresset
