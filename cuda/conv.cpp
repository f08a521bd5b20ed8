// Convolutions by cuDNN, with descriptors and algorithms kept per shape.
#include "cuda/conv.h"

#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/ops/ops.h"
#include "core/tensor/math_mode.h"
#include "cuda/launch.h"
#include "cuda/libraries.h"

// cuDNN 9 marks its convolution functions as old in favour of its graphs; they run the same engines
// and need no graph per fusion.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace cresset::cuda {
namespace {

/// Whether channels lie last: then all operands do, though with one channel it does not show.
bool lies_last(const Tensor& a, const Tensor& b, const Tensor& c) {
  return !a.is_contiguous() || !b.is_contiguous() || !c.is_contiguous();
}

void refuse_layout(bool channels_last) {
  CHECK(!channels_last, NotImplemented, launching_op(),
        ": cuDNN has no such convolution with channels last; make the operands contiguous");
}

ChannelShape channels(const ConvNdShape& s, bool channels_last) {
  return {s.n, s.c_out, s.out[0] * s.out[1] * s.out[2], channels_last};
}

#if CRESSET_CUDNN

enum class Direction : uint8_t { Forward, Input, Weight };

struct Key {
  ConvNdShape shape;
  DType dtype;
  Direction direction;
  bool channels_last, tf32, benchmark, deterministic;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t h = static_cast<uint64_t>(k.dtype) << 8 | static_cast<uint64_t>(k.direction) << 4 |
                 static_cast<uint64_t>(k.channels_last) << 3 | static_cast<uint64_t>(k.tf32) << 2 |
                 static_cast<uint64_t>(k.benchmark) << 1 | static_cast<uint64_t>(k.deterministic);
    auto mix = [&h](int64_t v) { h = (h ^ static_cast<uint64_t>(v)) * 0x9fb21c651e98df25u; };
    const ConvNdShape& s = k.shape;
    for (int64_t v : {s.n, s.c_in, s.c_out, s.groups}) mix(v);
    for (const auto* e : {&s.in, &s.kernel, &s.out, &s.stride, &s.pad_before, &s.dilation})
      for (int64_t v : *e) mix(v);
    return h ^ (h >> 29);
  }
};

int narrow_int(int64_t v) {
  CHECK(v <= INT32_MAX, NotImplemented, launching_op(), ": cuDNN takes sizes below 2^31, got ", v);
  return static_cast<int>(v);
}

/// Everything cuDNN wants to know about one convolution. Descriptors live as long as the process.
struct Plan {
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  cudnnTensorDescriptor_t bias = nullptr;
  int algorithm = -1;  ///< of the direction; -1: cuDNN has none
  size_t workspace = 0;
  bool fuses_bias = false;
};

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float16: return CUDNN_DATA_HALF;
    case DType::BFloat16: return CUDNN_DATA_BFLOAT16;
    case DType::Float64: return CUDNN_DATA_DOUBLE;
    default: return CUDNN_DATA_FLOAT;
  }
}

/// The spatial rank that is described: volumes of depth 1 are images.
size_t rank_of(const ConvNdShape& s) {
  const bool flat = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.pad_before[0] == 0;
  return flat ? 2 : 3;
}

std::array<int, 5> dims_of(size_t rank, int64_t a, int64_t b, const ConvNdShape::Extent& e) {
  std::array<int, 5> dims{narrow_int(a), narrow_int(b)};
  for (size_t i = 0; i < rank; ++i) dims[2 + i] = narrow_int(e[3 - rank + i]);
  return dims;
}

void describe_tensor(cudnnTensorDescriptor_t& d, const Key& k, int64_t channels,
                     const ConvNdShape::Extent& extent) {
  const size_t rank = rank_of(k.shape);
  const auto dims = dims_of(rank, k.shape.n, channels, extent);
  LIBRARY_CHECK("cuDNN", cudnnCreateTensorDescriptor(&d));
  LIBRARY_CHECK("cuDNN", cudnnSetTensorNdDescriptorEx(
                             d, k.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                             data_type(k.dtype), static_cast<int>(rank) + 2, dims.data()));
}

void describe(Plan& p, const Key& k) {
  const ConvNdShape& s = k.shape;
  const size_t rank = rank_of(s);
  const auto format = k.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  describe_tensor(p.x, k, s.c_in, s.in);
  describe_tensor(p.y, k, s.c_out, s.out);
  const auto filter = dims_of(rank, s.c_out, s.c_in / s.groups, s.kernel);
  LIBRARY_CHECK("cuDNN", cudnnCreateFilterDescriptor(&p.w));
  LIBRARY_CHECK("cuDNN", cudnnSetFilterNdDescriptor(p.w, data_type(k.dtype), format,
                                                    static_cast<int>(rank) + 2, filter.data()));
  int pad[3], stride[3], dilation[3], ones[5] = {1, narrow_int(s.c_out), 1, 1, 1};
  for (size_t i = 0; i < rank; ++i) {
    pad[i] = narrow_int(s.pad_before[3 - rank + i]);
    stride[i] = narrow_int(s.stride[3 - rank + i]);
    dilation[i] = narrow_int(s.dilation[3 - rank + i]);
  }
  LIBRARY_CHECK("cuDNN", cudnnCreateConvolutionDescriptor(&p.conv));
  LIBRARY_CHECK("cuDNN",
                cudnnSetConvolutionNdDescriptor(
                    p.conv, static_cast<int>(rank), pad, stride, dilation, CUDNN_CROSS_CORRELATION,
                    k.dtype == DType::Float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  LIBRARY_CHECK("cuDNN", cudnnSetConvolutionGroupCount(p.conv, narrow_int(s.groups)));
  LIBRARY_CHECK("cuDNN", cudnnCreateTensorDescriptor(&p.bias));
  LIBRARY_CHECK("cuDNN", cudnnSetTensorNdDescriptorEx(p.bias, format, data_type(k.dtype),
                                                      static_cast<int>(rank) + 2, ones));
}

cudnnMathType_t math_type(const Key& k) {
  if (k.dtype == DType::Float16 || k.dtype == DType::BFloat16) return CUDNN_TENSOR_OP_MATH;
  return k.dtype == DType::Float32 && !k.tf32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

constexpr size_t most_workspace = size_t{1} << 30;
constexpr int most_results = 8;

// The first result that works, fits and is allowed.
template <class Perf> void choose(Plan& p, const Key& k, const Perf* results, int count) {
  for (int i = 0; i < count; ++i) {
    const Perf& r = results[i];
    if (r.status != CUDNN_STATUS_SUCCESS || r.memory > most_workspace) continue;
    if (k.deterministic && r.determinism != CUDNN_DETERMINISTIC) continue;
    p.algorithm = static_cast<int>(r.algo);
    p.workspace = r.memory;
    const bool exact = k.dtype == DType::Float32 && !k.tf32;
    LIBRARY_CHECK("cuDNN",
                  cudnnSetConvolutionMathType(p.conv, exact ? CUDNN_FMA_MATH : r.mathType));
    return;
  }
}

/// The three tensors of a convolution, whichever of them is computed.
struct Operands {
  void *x, *w, *y;
};

// Asks cuDNN for its guess, or measures where benchmarking is on; the result is written over.
void choose_algorithm(Plan& p, const Key& k, const Operands& o, Device device) {
  LIBRARY_CHECK("cuDNN", cudnnSetConvolutionMathType(p.conv, math_type(k)));
  constexpr size_t room = size_t{256} << 20;
  Tensor memory;
  if (k.benchmark) memory = empty(Dims{static_cast<int64_t>(room)}, {DType::UInt8, device});
  void* space = k.benchmark ? data_of(memory) : nullptr;
  int count = 0;
  if (k.direction == Direction::Forward) {
    cudnnConvolutionFwdAlgoPerf_t r[most_results];
    if (k.benchmark)
      LIBRARY_CHECK("cuDNN", cudnnFindConvolutionForwardAlgorithmEx(dnn(), p.x, o.x, p.w, o.w,
                                                                    p.conv, p.y, o.y, most_results,
                                                                    &count, r, space, room));
    else
      LIBRARY_CHECK("cuDNN", cudnnGetConvolutionForwardAlgorithm_v7(dnn(), p.x, p.w, p.conv, p.y,
                                                                    most_results, &count, r));
    choose(p, k, r, count);
    p.fuses_bias = p.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM &&
                   k.dtype != DType::Float64;
  } else if (k.direction == Direction::Input) {
    cudnnConvolutionBwdDataAlgoPerf_t r[most_results];
    if (k.benchmark)
      LIBRARY_CHECK("cuDNN", cudnnFindConvolutionBackwardDataAlgorithmEx(
                                 dnn(), p.w, o.w, p.y, o.y, p.conv, p.x, o.x, most_results, &count,
                                 r, space, room));
    else
      LIBRARY_CHECK("cuDNN", cudnnGetConvolutionBackwardDataAlgorithm_v7(
                                 dnn(), p.w, p.y, p.conv, p.x, most_results, &count, r));
    choose(p, k, r, count);
  } else {
    cudnnConvolutionBwdFilterAlgoPerf_t r[most_results];
    if (k.benchmark)
      LIBRARY_CHECK("cuDNN", cudnnFindConvolutionBackwardFilterAlgorithmEx(
                                 dnn(), p.x, o.x, p.y, o.y, p.conv, p.w, o.w, most_results, &count,
                                 r, space, room));
    else
      LIBRARY_CHECK("cuDNN", cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                                 dnn(), p.x, p.y, p.conv, p.w, most_results, &count, r));
    choose(p, k, r, count);
  }
}

Plan& plan_for(const ConvNdShape& s, Direction direction, const Tensor& like, bool channels_last,
               const Operands& o) {
  thread_local std::vector<std::unordered_map<Key, Plan, KeyHash>> by_device;
  const size_t at = static_cast<size_t>(like.device().index);
  if (at >= by_device.size()) by_device.resize(at + 1);
  const MathMode& mode = math_mode();
  const Key key{s,
                like.dtype(),
                direction,
                channels_last,
                mode.conv_tf32,
                mode.conv_benchmark,
                mode.conv_deterministic};
  auto [found, fresh] = by_device[at].try_emplace(key);
  if (fresh) {
    try {
      describe(found->second, key);
      choose_algorithm(found->second, key, o, like.device());
    } catch (...) {
      by_device[at].erase(found);
      throw;
    }
  }
  return found->second;
}

/// One or zero in the type that cuDNN scales by.
struct Scale {
  double d;
  float f;
  explicit Scale(double v) : d(v), f(static_cast<float>(v)) {}
  const void* of(DType dtype) const {
    return dtype == DType::Float64 ? static_cast<const void*>(&d) : &f;
  }
};

class Workspace {
 public:
  Workspace(size_t bytes, Device device) : bytes_(bytes) {
    if (bytes) memory_ = empty(Dims{static_cast<int64_t>(bytes)}, {DType::UInt8, device});
  }
  void* data() const { return bytes_ ? data_of(memory_) : nullptr; }

 private:
  size_t bytes_;
  Tensor memory_;
};

// The bias in the same kernel, where cuDNN has one for this shape.
bool fused_forward(Plan& p, const Operands& o, const Tensor& bias, DType dtype, void* space) {
  static const cudnnActivationDescriptor_t identity = [] {
    cudnnActivationDescriptor_t d;
    LIBRARY_CHECK("cuDNN", cudnnCreateActivationDescriptor(&d));
    LIBRARY_CHECK("cuDNN", cudnnSetActivationDescriptor(d, CUDNN_ACTIVATION_IDENTITY,
                                                        CUDNN_NOT_PROPAGATE_NAN, 0));
    return d;
  }();
  if (!p.fuses_bias) return false;
  const Scale one(1), zero(0);
  const auto status = cudnnConvolutionBiasActivationForward(
      dnn(), one.of(dtype), p.x, o.x, p.w, o.w, p.conv,
      static_cast<cudnnConvolutionFwdAlgo_t>(p.algorithm), space, p.workspace, zero.of(dtype), p.y,
      o.y, p.bias, data_of(bias), identity, p.y, o.y);
  p.fuses_bias = status == CUDNN_STATUS_SUCCESS;
  return p.fuses_bias;
}

void run_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const Tensor& y) {
  const bool last = lies_last(x, w, y);
  const Operands o{data_of(x), data_of(w), data_of(y)};
  Plan& p = plan_for(s, Direction::Forward, y, last, o);
  if (p.algorithm < 0) {
    refuse_layout(last);
    return direct_forward(s, x, w, bias, y);
  }
  const Workspace space(p.workspace, y.device());
  if (bias.defined() && fused_forward(p, o, bias, y.dtype(), space.data())) return;
  const Scale one(1), zero(0);
  LIBRARY_CHECK("cuDNN",
                cudnnConvolutionForward(dnn(), one.of(y.dtype()), p.x, o.x, p.w, o.w, p.conv,
                                        static_cast<cudnnConvolutionFwdAlgo_t>(p.algorithm),
                                        space.data(), p.workspace, zero.of(y.dtype()), p.y, o.y));
  if (bias.defined()) add_channel_bias(bias, y, channels(s, last));
}

void run_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  const Operands o{data_of(gx), data_of(w), data_of(gy)};
  const bool last = lies_last(gy, w, gx);
  Plan& p = plan_for(s, Direction::Input, gx, last, o);
  if (p.algorithm < 0) {
    refuse_layout(last);
    return direct_backward_input(s, gy, w, gx);
  }
  const Workspace space(p.workspace, gx.device());
  const Scale one(1), zero(0);
  LIBRARY_CHECK("cuDNN", cudnnConvolutionBackwardData(
                             dnn(), one.of(gx.dtype()), p.w, o.w, p.y, o.y, p.conv,
                             static_cast<cudnnConvolutionBwdDataAlgo_t>(p.algorithm), space.data(),
                             p.workspace, zero.of(gx.dtype()), p.x, o.x));
}

void run_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy,
                         const Tensor& gw) {
  const Operands o{data_of(x), data_of(gw), data_of(gy)};
  const bool last = lies_last(x, gy, gw);
  Plan& p = plan_for(s, Direction::Weight, gw, last, o);
  if (p.algorithm < 0) {
    refuse_layout(last);
    return direct_backward_weight(s, x, gy, gw);
  }
  const Workspace space(p.workspace, gw.device());
  const Scale one(1), zero(0);
  LIBRARY_CHECK("cuDNN", cudnnConvolutionBackwardFilter(
                             dnn(), one.of(gw.dtype()), p.x, o.x, p.y, o.y, p.conv,
                             static_cast<cudnnConvolutionBwdFilterAlgo_t>(p.algorithm),
                             space.data(), p.workspace, zero.of(gw.dtype()), p.w, o.w));
}

#else

// Built without cuDNN: plain loops serve what they can.

void run_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const Tensor& y) {
  refuse_layout(lies_last(x, w, y));
  direct_forward(s, x, w, bias, y);
}
void run_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  refuse_layout(lies_last(gy, w, gx));
  direct_backward_input(s, gy, w, gx);
}
void run_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy,
                         const Tensor& gw) {
  refuse_layout(lies_last(x, gy, gw));
  direct_backward_weight(s, x, gy, gw);
}

#endif

// ---- uneven padding: cuDNN pads both sides alike and computes every result that fits

/// The extents that exactly the wanted results read, without padding.
ConvNdShape fitted(const ConvNdShape& s) {
  ConvNdShape f = s;
  for (size_t d = 0; d < 3; ++d) {
    f.in[d] = (s.out[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) + 1;
    f.pad_before[d] = f.pad_after[d] = 0;
  }
  return f;
}

bool fits(const ConvNdShape& s) {
  for (size_t d = 0; d < 3; ++d) {
    const int64_t span = s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int64_t room = s.in[d] + 2 * s.pad_before[d] - span;
    if (room < 0 || room / s.stride[d] + 1 != s.out[d]) return false;
  }
  return true;
}

/// An uninitialised tensor like `t` with the fitted extents, in t's memory order.
Tensor like_with_extents(const Tensor& t, const ConvNdShape::Extent& e) {
  Dims sizes = t.sizes();
  for (int64_t d = 2; d < t.dim(); ++d)
    sizes[static_cast<size_t>(d)] = e[static_cast<size_t>(3 - t.dim() + d)];
  if (t.is_contiguous()) return empty(sizes, options_of(t));
  Dims strides(sizes.size());
  int64_t step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[1] = 1;
  strides[0] = step;
  return empty_strided(sizes, strides, options_of(t));
}

void shift(const Tensor& from, const Tensor& to, const ConvNdShape& s,
           const ConvNdShape::Extent& from_extent, const ConvNdShape::Extent& to_extent,
           int64_t sign) {
  const bool last = !from.is_contiguous();
  ConvNdShape::Extent by;
  for (size_t d = 0; d < 3; ++d) by[d] = sign * s.pad_before[d];
  shift_volumes(from, to, last ? s.n : s.n * s.c_in, last ? s.c_in : 1, from_extent, to_extent, by);
}

bool by_loops(DType dtype) { return dtype == DType::Int64 || is_complex(dtype); }

void zero(const Tensor& t) {
  CUDA_CHECK(cudaMemsetAsync(data_of(t), 0, itemsize(t.dtype()) * static_cast<size_t>(t.numel()),
                             current_stream()));
}

int64_t inner_work(const ConvNdShape& s) {
  return s.n * s.c_in * s.c_out * s.in[0] * s.in[1] * s.in[2] * s.out[0] * s.out[1] * s.out[2];
}

void forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
             const Tensor& y) {
  if (y.numel() == 0) return;
  if (by_loops(y.dtype()) || s.c_in == 0) return direct_forward(s, x, w, bias, y);
  if (fits(s)) return run_forward(s, x, w, bias, y);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(x, f.in);
  shift(x, moved, s, s.in, f.in, 1);
  run_forward(f, moved, w, bias, y);
}

void backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  if (gx.numel() == 0) return;
  if (inner_work(s) == 0) return zero(gx);
  if (by_loops(gx.dtype())) return direct_backward_input(s, gy, w, gx);
  if (fits(s)) return run_backward_input(s, gy, w, gx);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(gx, f.in);
  run_backward_input(f, gy, w, moved);
  shift(moved, gx, s, f.in, s.in, -1);
}

void backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy, const Tensor& gw,
                     const Tensor& gb) {
  if (gb.defined() && gb.numel()) sum_channels(gy, gb, channels(s, !gy.is_contiguous()));
  if (gw.numel() == 0) return;
  if (inner_work(s) == 0) return zero(gw);
  if (by_loops(gw.dtype())) return direct_backward_weight(s, x, gy, gw);
  if (fits(s)) return run_backward_weight(s, x, gy, gw);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(x, f.in);
  shift(x, moved, s, s.in, f.in, 1);
  run_backward_weight(f, moved, gy, gw);
}

}  // namespace

template <> const ConvKernels& cuda_table<ConvKernels>() {
  static constexpr ConvKernels table = {
      .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
  return table;
}

}  // namespace cresset::cuda
