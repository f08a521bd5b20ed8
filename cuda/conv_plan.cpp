// Convolutions by cuDNN's graphs, with the plan of an engine kept per shape.
//
// Note [Plans]
// cuDNN's older functions (cudnnConvolutionForward and its kin) look for an engine anew in each
// call, 70 to 230 microseconds of the host's time on an H200 machine. A plan that is kept is run in
// a tenth of that.
#include "cuda/conv_plan.h"

#if CRESSET_CUDNN

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor/math_mode.h"
#include "cuda/launch.h"
#include "cuda/libraries.h"
#include "cuda/scopes.h"

namespace cresset::cuda {
namespace {

/// What a plan depends on.
struct Key {
  ConvNdShape shape;
  DType dtype;
  ConvDirection direction;
  uint8_t alignment;  ///< that all addresses have, at most 16
  bool channels_last, tf32, benchmark, deterministic;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t h = static_cast<uint64_t>(k.dtype) << 16 | static_cast<uint64_t>(k.alignment) << 8 |
                 static_cast<uint64_t>(k.direction) << 4 |
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

// ---- descriptors

template <class T> constexpr cudnnBackendAttributeType_t attribute_type{};
template <> constexpr auto attribute_type<int64_t> = CUDNN_TYPE_INT64;
template <> constexpr auto attribute_type<float> = CUDNN_TYPE_FLOAT;
template <> constexpr auto attribute_type<double> = CUDNN_TYPE_DOUBLE;
template <> constexpr auto attribute_type<void*> = CUDNN_TYPE_VOID_PTR;
template <> constexpr auto attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <> constexpr auto attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <> constexpr auto attribute_type<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <> constexpr auto attribute_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <> constexpr auto attribute_type<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;

/// A descriptor of cuDNN's backend: attributes are set, then it is finished. What cuDNN refuses is
/// remembered until then.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    LIBRARY_CHECK("cuDNN", cudnnBackendCreateDescriptor(type, &raw_));
  }
  Descriptor(Descriptor&& o) noexcept
      : raw_(std::exchange(o.raw_, nullptr)), accepted_(o.accepted_) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(raw_, o.raw_);
    std::swap(accepted_, o.accepted_);
    return *this;
  }
  ~Descriptor() {
    if (raw_) cudnnBackendDestroyDescriptor(raw_);
  }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T* values, size_t count) {
    return put(name, attribute_type<T>, values, count);
  }
  template <class T> Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, &value, 1);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &other.raw_, 1);
  }
  /// Fills `values` and returns how many there are.
  template <class T>
  int64_t get(cudnnBackendAttributeName_t name, T* values, int64_t most,
              cudnnBackendAttributeType_t type = attribute_type<T>) const {
    int64_t count = 0;
    const auto status = cudnnBackendGetAttribute(raw_, name, type, most, &count, values);
    return status == CUDNN_STATUS_SUCCESS ? count : 0;
  }
  /// Whether cuDNN takes it.
  bool finish() { return accepted_ && cudnnBackendFinalize(raw_) == CUDNN_STATUS_SUCCESS; }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  Descriptor& put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const void* values, size_t count) {
    accepted_ = accepted_ && cudnnBackendSetAttribute(raw_, name, type, static_cast<int64_t>(count),
                                                      values) == CUDNN_STATUS_SUCCESS;
    return *this;
  }

  cudnnBackendDescriptor_t raw_ = nullptr;
  bool accepted_ = true;
};

// ---- the operation

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float16: return CUDNN_DATA_HALF;
    case DType::BFloat16: return CUDNN_DATA_BFLOAT16;
    case DType::Float64: return CUDNN_DATA_DOUBLE;
    default: return CUDNN_DATA_FLOAT;
  }
}
cudnnDataType_t compute_type(DType dtype) {
  return dtype == DType::Float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/// The spatial rank that is described: volumes of depth 1 are images.
size_t rank_of(const ConvNdShape& s) {
  const bool flat = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.pad_before[0] == 0;
  return flat ? 2 : 3;
}

constexpr int64_t name_x = 1, name_w = 2, name_y = 3;

/// The tensor [a, b, extent]; its second dim lies last with channels_last.
Descriptor tensor(const Key& k, int64_t name, int64_t a, int64_t b, const ConvNdShape::Extent& e) {
  const size_t rank = rank_of(k.shape);
  int64_t dims[5] = {a, b}, strides[5], step = k.channels_last ? b : 1;
  for (size_t i = 0; i < rank; ++i) dims[2 + i] = e[3 - rank + i];
  for (size_t i = rank + 2; i-- > 2;) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[1] = k.channels_last ? 1 : step;
  strides[0] = k.channels_last ? step : step * b;
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(k.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims, rank + 2)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides, rank + 2)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{k.alignment});
  return d;
}

Descriptor convolution(const Key& k) {
  const ConvNdShape& s = k.shape;
  const size_t rank = rank_of(s), first = 3 - rank;
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type(k.dtype))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(rank))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, &s.dilation[first], rank)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &s.stride[first], rank)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &s.pad_before[first], rank)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &s.pad_before[first], rank);
  return d;
}

/// A direction's descriptor and the names of its attributes.
struct Form {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
};
constexpr Form forms[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/// The graph of the one operation; nothing where cuDNN does not know it.
std::optional<Descriptor> graph_of(const Key& k) {
  const ConvNdShape& s = k.shape;
  const Form& form = forms[static_cast<size_t>(k.direction)];
  Descriptor conv = convolution(k), x = tensor(k, name_x, s.n, s.c_in, s.in),
             w = tensor(k, name_w, s.c_out, s.c_in / s.groups, s.kernel),
             y = tensor(k, name_y, s.n, s.c_out, s.out);
  if (!conv.finish() || !x.finish() || !w.finish() || !y.finish()) return std::nullopt;
  Descriptor operation(form.type);
  operation.set(form.conv, conv).set(form.x, x).set(form.w, w).set(form.y, y);
  if (k.dtype == DType::Float64)
    operation.set(form.alpha, 1.0).set(form.beta, 0.0);
  else
    operation.set(form.alpha, 1.0f).set(form.beta, 0.0f);
  if (!operation.finish()) return std::nullopt;
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, dnn()).set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (!graph.finish()) return std::nullopt;
  return graph;
}

// ---- engines

/// What cuDNN proposes for a graph, best first.
std::vector<Descriptor> proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  std::vector<Descriptor> list;
  if (!heuristics.finish()) return list;
  constexpr auto results = CUDNN_ATTR_ENGINEHEUR_RESULTS;
  constexpr auto type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  const int64_t count = heuristics.get<cudnnBackendDescriptor_t>(results, nullptr, 0, type);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    list.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(list.back().raw());
  }
  const int64_t filled = heuristics.get(results, raw.data(), count, type);
  list.erase(list.begin() + filled, list.end());
  return list;
}

/// Whether an engine computes as exactly and as reproducibly as the settings ask for.
bool is_allowed(const Descriptor& config, const Key& k) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, &raw, 1, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t count =
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, notes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const bool exact = k.dtype == DType::Float32 && !k.tf32;
  return std::none_of(notes, notes + count, [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && exact) ||
           (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && k.deterministic);
  });
}

constexpr int64_t most_workspace = int64_t{1} << 30;

/// An engine made ready.
struct Plan {
  Descriptor plan, config;
  int64_t workspace = 0;
};

/// Nothing where the engine cannot serve after all, or needs too much memory.
std::optional<Plan> make_ready(Descriptor&& config) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, dnn())
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finish()) return std::nullopt;
  int64_t workspace = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace, 1);
  if (workspace > most_workspace) return std::nullopt;
  return Plan{std::move(plan), std::move(config), workspace};
}

cudnnStatus_t execute(const Plan& plan, const ConvTensors& t, Device device) {
  Tensor memory;
  if (plan.workspace) memory = empty(Dims{plan.workspace}, {DType::UInt8, device});
  void* const workspace = plan.workspace ? data_of(memory) : nullptr;
  constexpr int64_t names[] = {name_x, name_w, name_y};
  void* const data[] = {t.x, t.w, t.y};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names, 3)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data, 3)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  if (!pack.finish()) return CUDNN_STATUS_BAD_PARAM;
  return cudnnBackendExecute(dnn(), plan.plan.raw(), pack.raw());
}

/// Milliseconds of three runs after a first one; infinite where a run fails.
float time_of(const Plan& plan, const ConvTensors& t, Device device) {
  cudaEvent_t begin = nullptr, end = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&begin, cudaEventDefault));
  CUDA_CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
  bool good = execute(plan, t, device) == CUDNN_STATUS_SUCCESS;
  CUDA_CHECK(cudaEventRecord(begin, current_stream()));
  for (int i = 0; i < 3; ++i) good = good && execute(plan, t, device) == CUDNN_STATUS_SUCCESS;
  CUDA_CHECK(cudaEventRecord(end, current_stream()));
  CUDA_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return good ? ms : std::numeric_limits<float>::infinity();
}

// The first engine that serves; with benchmarking, the fastest of the first eight.
std::optional<Plan> choose(const Key& k, const ConvTensors& t, Device device) {
  const RelaxedCapture relaxed;
  const std::optional<Descriptor> graph = graph_of(k);
  std::optional<Plan> best;
  float least = std::numeric_limits<float>::infinity();
  int tried = 0;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!graph) break;
    for (Descriptor& config : proposals(*graph, mode)) {
      if (!is_allowed(config, k)) continue;
      std::optional<Plan> plan = make_ready(std::move(config));
      if (!plan || !k.benchmark) {
        if (plan) return plan;
        continue;
      }
      const float ms = time_of(*plan, t, device);
      if (ms < least) {
        least = ms;
        best = std::move(plan);
      }
      if (++tried == 8) return best;
    }
  }
  return best;
}

/// Null where cuDNN has no engine. Plans live as long as the process: the driver may be gone when
/// threads are torn down.
const Plan* plan_for(const Key& key, const ConvTensors& t, Device device) {
  using Plans = std::unordered_map<Key, std::optional<Plan>, KeyHash>;
  thread_local auto* by_device = new std::vector<Plans>;
  const size_t at = static_cast<size_t>(device.index);
  if (at >= by_device->size()) by_device->resize(at + 1);
  Plans& plans = (*by_device)[at];
  auto found = plans.find(key);
  if (found == plans.end()) found = plans.emplace(key, choose(key, t, device)).first;
  return found->second ? &*found->second : nullptr;
}

uint8_t alignment_of(const ConvTensors& t) {
  const auto bits = reinterpret_cast<uintptr_t>(t.x) | reinterpret_cast<uintptr_t>(t.w) |
                    reinterpret_cast<uintptr_t>(t.y) | 16;
  return static_cast<uint8_t>(bits & -bits);
}

}  // namespace

bool run_conv_plan(const ConvNdShape& s, ConvDirection direction, const Tensor& like,
                   bool channels_last, const ConvTensors& t) {
  const MathMode& mode = math_mode();
  const Key key{s,
                like.dtype(),
                direction,
                alignment_of(t),
                channels_last,
                mode.conv_tf32,
                mode.conv_benchmark,
                mode.conv_deterministic};
  const Plan* plan = plan_for(key, t, like.device());
  if (!plan) return false;
  LIBRARY_CHECK("cuDNN", execute(*plan, t, like.device()));
  return true;
}

}  // namespace cresset::cuda

#else

namespace cresset::cuda {

bool run_conv_plan(const ConvNdShape&, ConvDirection, const Tensor&, bool, const ConvTensors&) {
  return false;
}

}  // namespace cresset::cuda

#endif
