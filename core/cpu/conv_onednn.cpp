// float convolutions by oneDNN, with the primitives of the shapes used last kept ready.
#if CRESSET_ONEDNN
#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cpu/conv_raw.h"
#include "core/cpu/parallel.h"
#include "core/cpu/workspace.h"

namespace cresset {
namespace {

using dnnl::memory;
using dims = memory::dims;

enum class Kind { kForward, kBackwardInput, kBackwardWeight };

/// Never destroyed: kernels may still run while the process ends.
const dnnl::engine& cpu_engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& thread_stream() {
  static thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

/// One argument of a primitive: the caller's layout, the primitive's, and the copy between them.
struct Argument {
  int id;
  bool output;
  memory::desc plain, inner;
  std::optional<dnnl::reorder> convert;
  size_t offset = 0;
};

/// A primitive with its arguments in the order of the caller's pointers, and its scratch layout.
struct Plan {
  std::optional<dnnl::primitive> primitive;
  std::vector<Argument> arguments;
  memory::desc scratchpad;
  size_t scratch_offset = 0, scratch_bytes = 0;
};

struct Key {
  ConvNdShape shape;
  Kind kind;
  bool bias;
  int threads;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    size_t hash = static_cast<size_t>(key.kind) * 2 + key.bias + 8 * key.threads;
    auto mix = [&](int64_t x) { hash = (hash ^ static_cast<size_t>(x)) * 0x9E3779B97F4A7C15ull; };
    const ConvNdShape& s = key.shape;
    for (int64_t x : {s.n, s.c_in, s.c_out, s.groups}) mix(x);
    for (const auto* e :
         {&s.in, &s.kernel, &s.out, &s.stride, &s.pad_before, &s.pad_after, &s.dilation}) {
      for (int64_t x : *e) mix(x);
    }
    return hash ^ (hash >> 32);
  }
};

/// The plans used last, at most kCapacity of them; safe to use from several threads.
class PlanCache {
 public:
  template <class Make> std::shared_ptr<const Plan> get(const Key& key, Make&& make) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto found = index_.find(key); found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    auto plan = std::make_shared<const Plan>(make());
    order_.emplace_front(key, plan);
    index_[key] = order_.begin();
    if (order_.size() > kCapacity) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kCapacity = 256;
  using Order = std::list<std::pair<Key, std::shared_ptr<const Plan>>>;
  std::mutex mutex_;
  Order order_;
  std::unordered_map<Key, Order::iterator, KeyHash> index_;
};

PlanCache& plan_cache() {
  static auto* cache = new PlanCache;
  return *cache;
}

/// oneDNN's view of a shape: the spatial extents that count and plain contiguous descriptors.
struct Geometry {
  dims x, w, y, bias, strides, dilates, pad_before, pad_after;

  explicit Geometry(const ConvNdShape& s) : x{s.n, s.c_in}, y{s.n, s.c_out}, bias{s.c_out} {
    if (s.groups > 1)
      w = {s.groups, s.c_out / s.groups, s.c_in / s.groups};
    else
      w = {s.c_out, s.c_in};
    const bool flat = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.pad_before[0] == 0;
    for (size_t i = flat ? 1 : 0; i < 3; ++i) {
      x.push_back(s.in[i]);
      w.push_back(s.kernel[i]);
      y.push_back(s.out[i]);
      strides.push_back(s.stride[i]);
      dilates.push_back(s.dilation[i] - 1);
      pad_before.push_back(s.pad_before[i]);
      pad_after.push_back(s.pad_after[i]);
    }
  }
};

memory::desc plain(const dims& sizes) {
  dims strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  return memory::desc(sizes, memory::data_type::f32, strides);
}

memory::desc any(const dims& sizes) {
  return memory::desc(sizes, memory::data_type::f32, memory::format_tag::any);
}

/// Sets the copies and the places in the scratch block.
void finish(Plan& plan) {
  auto place = [&](size_t bytes) {
    const size_t offset = plan.scratch_bytes;
    plan.scratch_bytes += (bytes + 63) / 64 * 64;
    return offset;
  };
  for (Argument& a : plan.arguments) {
    if (a.plain == a.inner) continue;
    const memory::desc& from = a.output ? a.inner : a.plain;
    const memory::desc& to = a.output ? a.plain : a.inner;
    a.convert.emplace(dnnl::reorder::primitive_desc(cpu_engine(), from, cpu_engine(), to));
    a.offset = place(a.inner.get_size());
  }
  plan.scratch_offset = place(plan.scratchpad.get_size());
}

dnnl::convolution_forward::primitive_desc forward_desc(const Geometry& g, bool bias,
                                                       const dnnl::primitive_attr& attr) {
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  auto desc = bias ? Forward::desc(kind, algorithm, any(g.x), any(g.w), plain(g.bias), any(g.y),
                                   g.strides, g.dilates, g.pad_before, g.pad_after)
                   : Forward::desc(kind, algorithm, any(g.x), any(g.w), any(g.y), g.strides,
                                   g.dilates, g.pad_before, g.pad_after);
  return {desc, attr, cpu_engine()};
}

Plan make_plan(const Key& key) {
  const Geometry g(key.shape);
  dnnl::primitive_attr attr;
  // Scratch of the caller makes one primitive usable from several threads at once.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  Plan plan;
  const auto forward = forward_desc(g, key.bias, attr);
  if (key.kind == Kind::kForward) {
    plan.arguments = {{DNNL_ARG_SRC, false, plain(g.x), forward.src_desc(), {}},
                      {DNNL_ARG_WEIGHTS, false, plain(g.w), forward.weights_desc(), {}},
                      {DNNL_ARG_DST, true, plain(g.y), forward.dst_desc(), {}}};
    if (key.bias) {
      plan.arguments.push_back({DNNL_ARG_BIAS, false, plain(g.bias), plain(g.bias), {}});
    }
    plan.scratchpad = forward.scratchpad_desc();
    plan.primitive = dnnl::convolution_forward(forward);
  } else if (key.kind == Kind::kBackwardInput) {
    using Backward = dnnl::convolution_backward_data;
    const Backward::primitive_desc pd(
        Backward::desc(algorithm, any(g.x), any(g.w), any(g.y), g.strides, g.dilates, g.pad_before,
                       g.pad_after),
        attr, cpu_engine(), forward);
    plan.arguments = {{DNNL_ARG_DIFF_DST, false, plain(g.y), pd.diff_dst_desc(), {}},
                      {DNNL_ARG_WEIGHTS, false, plain(g.w), pd.weights_desc(), {}},
                      {DNNL_ARG_DIFF_SRC, true, plain(g.x), pd.diff_src_desc(), {}}};
    plan.scratchpad = pd.scratchpad_desc();
    plan.primitive = Backward(pd);
  } else {
    using Backward = dnnl::convolution_backward_weights;
    auto desc = key.bias ? Backward::desc(algorithm, any(g.x), any(g.w), plain(g.bias), any(g.y),
                                          g.strides, g.dilates, g.pad_before, g.pad_after)
                         : Backward::desc(algorithm, any(g.x), any(g.w), any(g.y), g.strides,
                                          g.dilates, g.pad_before, g.pad_after);
    const Backward::primitive_desc pd(desc, attr, cpu_engine(), forward);
    plan.arguments = {{DNNL_ARG_SRC, false, plain(g.x), pd.src_desc(), {}},
                      {DNNL_ARG_DIFF_DST, false, plain(g.y), pd.diff_dst_desc(), {}},
                      {DNNL_ARG_DIFF_WEIGHTS, true, plain(g.w), pd.diff_weights_desc(), {}}};
    if (key.bias) {
      plan.arguments.push_back({DNNL_ARG_DIFF_BIAS, true, plain(g.bias), plain(g.bias), {}});
    }
    plan.scratchpad = pd.scratchpad_desc();
    plan.primitive = Backward(pd);
  }
  finish(plan);
  return plan;
}

/// A shape that oneDNN refuses is remembered as a plan without a primitive.
Plan make_plan_or_none(const Key& key) {
  try {
    return make_plan(key);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    return Plan{};
  }
}

void execute(const Plan& plan, const std::vector<void*>& pointers) {
  const Scratch scratch(plan.scratch_bytes);
  char* block = scratch.as<char>();
  dnnl::stream& stream = thread_stream();
  std::unordered_map<int, memory> arguments;
  for (size_t i = 0; i < plan.arguments.size(); ++i) {
    const Argument& a = plan.arguments[i];
    void* at = a.convert ? block + a.offset : pointers[i];
    memory inner(a.inner, cpu_engine(), at);
    if (a.convert && !a.output) {
      memory outer(a.plain, cpu_engine(), pointers[i]);
      a.convert->execute(stream, outer, inner);
    }
    arguments.emplace(a.id, std::move(inner));
  }
  arguments.emplace(DNNL_ARG_SCRATCHPAD,
                    memory(plan.scratchpad, cpu_engine(), block + plan.scratch_offset));
  plan.primitive->execute(stream, arguments);
  for (size_t i = 0; i < plan.arguments.size(); ++i) {
    const Argument& a = plan.arguments[i];
    if (!a.convert || !a.output) continue;
    memory outer(a.plain, cpu_engine(), pointers[i]);
    a.convert->execute(stream, arguments.at(a.id), outer);
  }
  stream.wait();
}

/// Computes the whole shape: on oneDNN's threads, or on this one inside a parallel region.
bool run_whole(const ConvNdShape& s, Kind kind, const std::vector<void*>& pointers) {
  sync_openmp_threads();
  const Key key{s, kind, pointers.size() == 4, in_parallel_region() ? 1 : num_threads()};
  try {
    const auto plan = plan_cache().get(key, [&] { return make_plan_or_none(key); });
    if (!plan->primitive) return false;
    execute(*plan, pointers);
    return true;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw std::runtime_error(std::string("convolution: oneDNN failed: ") + error.what());
  }
}

/// oneDNN's memory objects take void* for inputs too, which it only reads.
void* readable(const float* p) { return const_cast<float*>(p); }

std::vector<void*> pointers(void* a, void* b, void* c, void* optional) {
  std::vector<void*> list{a, b, c};
  if (optional != nullptr) list.push_back(optional);
  return list;
}

int64_t product(const ConvNdShape::Extent& e) { return e[0] * e[1] * e[2]; }

int64_t weight_count(const ConvNdShape& s) {
  return s.c_out * (s.c_in / s.groups) * product(s.kernel);
}

/// In how many slices of the batch the threads of the pool work best, at most `most`; 1 when there
/// is not a slice for each of them, so that oneDNN's own threads do better.
int64_t slice_count(const ConvNdShape& s, int64_t most) {
  constexpr int64_t kSliceWork = 2 << 20;  // multiply-adds
  const int64_t work = s.n * product(s.out) * weight_count(s);
  const int64_t count = std::min({balanced_pieces(), most, s.n, work / kSliceWork});
  return count < num_threads() ? 1 : count;
}

/// Runs `one(slice's shape, its first image, its index)` for every slice; false when one of them
/// was refused.
template <class One> bool run_slices(const ConvNdShape& s, int64_t count, One&& one) {
  std::atomic<bool> taken = true;
  std::mutex mutex;
  std::exception_ptr error;
  parallel_for(0, count, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi && taken; ++i) try {
        const int64_t first = s.n * i / count;
        ConvNdShape slice = s;
        slice.n = s.n * (i + 1) / count - first;
        if (!one(slice, first, i)) taken = false;
      } catch (...) {
        std::lock_guard lock(mutex);
        error = std::current_exception();
      }
  });
  if (error) std::rethrow_exception(error);
  return taken;
}

int64_t x_image(const ConvNdShape& s) { return s.c_in * product(s.in); }
int64_t y_image(const ConvNdShape& s) { return s.c_out * product(s.out); }

}  // namespace

bool conv_onednn_forward(const ConvNdShape& s, const float* x, const float* w, const float* bias,
                         float* y) {
  return run_slices(s, slice_count(s, s.n), [&](const ConvNdShape& slice, int64_t n, int64_t) {
    return run_whole(
        slice, Kind::kForward,
        pointers(readable(x + n * x_image(s)), readable(w), y + n * y_image(s), readable(bias)));
  });
}

bool conv_onednn_backward_input(const ConvNdShape& s, const float* gy, const float* w, float* gx) {
  return run_slices(s, slice_count(s, s.n), [&](const ConvNdShape& slice, int64_t n, int64_t) {
    return run_whole(
        slice, Kind::kBackwardInput,
        pointers(readable(gy + n * y_image(s)), readable(w), gx + n * x_image(s), nullptr));
  });
}

bool conv_onednn_backward_weight(const ConvNdShape& s, const float* x, const float* gy, float* gw,
                                 float* gb) {
  // Every slice but the first has sums of its own, which are added up at the end.
  constexpr int64_t kFewWeights = 1 << 16;
  const int64_t weights = weight_count(s), sums = weights + s.c_out;
  const int64_t count = slice_count(s, weights <= kFewWeights ? s.n : num_threads());
  const Scratch scratch(static_cast<size_t>((count - 1) * sums) * sizeof(float));
  auto sum = [&](int64_t i) { return scratch.as<float>() + (i - 1) * sums; };
  const bool taken = run_slices(s, count, [&](const ConvNdShape& slice, int64_t n, int64_t i) {
    float* to_w = i == 0 ? gw : sum(i);
    float* to_b = gb == nullptr || i == 0 ? gb : sum(i) + weights;
    return run_whole(
        slice, Kind::kBackwardWeight,
        pointers(readable(x + n * x_image(s)), readable(gy + n * y_image(s)), to_w, to_b));
  });
  for (int64_t i = 1; taken && i < count; ++i) {
    for (int64_t k = 0; k < weights; ++k) gw[k] += sum(i)[k];
    for (int64_t c = 0; gb != nullptr && c < s.c_out; ++c) gb[c] += sum(i)[weights + c];
  }
  return taken;
}

}  // namespace cresset
#endif
