// The C interface through which every host language calls the core.
#include "core/abi.h"

#include <algorithm>
#include <limits>
#include <new>

#include "core/cpu/parallel.h"
#include "core/dispatch/op.h"
#include "core/dispatch/snapshot.h"
#include "core/tensor/allocator.h"
#include "core/tensor/cuda_services.h"
#include "core/tensor/device_runtime.h"

struct cresset_env {
  cresset::HandleTable handles;
  /// Of each open scope: bytes allocated, and allocated since the sweep, when it began.
  struct Mark {
    int64_t allocated, since_sweep;
  };
  std::vector<Mark> marks;
};

namespace {

// Lifts the listed handles out of scope `from`; what was in no such scope is marked by -1.
void lift(cresset_env* env, double* slots, uint32_t from) {
  size_t count = static_cast<size_t>(slots[0]);
  for (size_t i = 1; i <= count; ++i)
    if (!env->handles.lift(static_cast<int64_t>(slots[i]), from)) slots[i] = -1;
}

thread_local std::string last_error;

int32_t status_of(cresset::ErrorKind kind) { return 1 + static_cast<int32_t>(kind); }

// A message opens with the operator that was called, also where a part of it found the mistake.
std::string named(std::string_view op, const std::string& message) {
  while (op.ends_with('_')) op.remove_suffix(1);
  if (op.empty() || op.starts_with('_') || message.starts_with(op)) return message;
  return std::string(op) + ": " + message;
}

// Keeps the message for cresset_error(). Apart, for Emscripten's clang 14 makes a trap of the first
// use of a thread-local object inside a handler.
[[gnu::noinline]] int32_t failed(cresset::ErrorKind kind, std::string message) {
  last_error = std::move(message);
  return status_of(kind);
}

// Every exception ends here: none crosses into the host.
template <class Name, class F> int32_t guarded(Name&& name, F&& f) {
  try {
    f();
    return 0;
  } catch (const cresset::Error& e) {
    return failed(e.kind, named(name(), e.message));
  } catch (const std::bad_alloc&) {
    return failed(cresset::ErrorKind::OutOfMemory, std::string(name()) + ": out of memory");
  } catch (const std::exception& e) {
    return failed(cresset::ErrorKind::Internal, std::string(name()) + ": " + e.what());
  }
}

}  // namespace

extern "C" {

cresset_env* cresset_env_new() { return new cresset_env; }
void cresset_env_delete(cresset_env* env) { delete env; }

int32_t cresset_call(cresset_env* env, uint32_t op, double* slots) {
  auto name = [&] { return op < cresset::op_count() ? cresset::op_name(op) : "call"; };
  return guarded(name, [&] { cresset::call(op, slots, env->handles); });
}
const char* cresset_error() { return last_error.c_str(); }
uint32_t cresset_op_count() { return cresset::op_count(); }
const char* cresset_op_name(uint32_t op) { return cresset::op_name(op); }

uint32_t cresset_roll_hash() {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (uint32_t op = 0; op < cresset::op_count(); ++op)
    for (const char* p = cresset::op_name(op);; ++p) {
      hash = (hash ^ static_cast<uint8_t>(*p)) * 16777619u;
      if (!*p) break;
    }
  return hash;
}

const char* cresset_schemas() {
  thread_local std::string text;
  text = cresset::schemas_json();
  return text.c_str();
}

void cresset_free(cresset_env* env, double id) { env->handles.remove(static_cast<int64_t>(id)); }
int64_t cresset_live(cresset_env* env) { return static_cast<int64_t>(env->handles.live()); }

uint32_t cresset_scope_begin(cresset_env* env) {
  env->marks.push_back({cresset::cpu_allocated(), cresset::cpu_allocated_since_sweep()});
  return env->handles.open_scope();
}

void cresset_scope_end(cresset_env* env, uint32_t depth, double* slots) {
  if (depth == 0 || depth > env->marks.size()) return;
  lift(env, slots, depth);
  env->handles.close_scope(depth);
  // What the scope freed is not garbage for the next sweep.
  cresset_env::Mark mark = env->marks[depth - 1];
  env->marks.resize(depth - 1);
  int64_t stayed = std::max<int64_t>(cresset::cpu_allocated() - mark.allocated, 0);
  int64_t since = cresset::cpu_allocated_since_sweep();
  cresset::cpu_mark_sweep(std::min(since, mark.since_sweep + stayed));
}

int32_t cresset_scope_of(cresset_env* env, double id) {
  return id < 0 ? -1 : env->handles.scope_of(static_cast<int64_t>(id));
}

void cresset_keep(cresset_env* env, double* slots) { lift(env, slots, 1); }

const double* cresset_scope_ids(cresset_env* env, uint32_t depth, uint32_t* count) {
  thread_local std::vector<double> ids;
  std::vector<int64_t> found = env->handles.scope_ids(depth);
  ids.assign(found.begin(), found.end());
  *count = static_cast<uint32_t>(ids.size());
  return ids.data();
}

const char* cresset_snapshot(cresset_env* env) {
  thread_local std::string text;
  text = cresset::snapshot_json(env->handles);
  return text.c_str();
}

uint32_t cresset_frame_capacity() { return static_cast<uint32_t>(cresset::frame_capacity); }

void* cresset_data(cresset_env* env, double id, size_t* bytes) {
  void* data = nullptr;
  int32_t status = guarded([] { return "data"; },
                           [&] {
                             using namespace cresset;
                             const Tensor* t = env->handles.find(static_cast<int64_t>(id));
                             CHECK(t, Value, "data: the tensor has been freed");
                             CHECK(t->device().is_cpu(), Device,
                                   "data: expected a tensor on cpu, got one on ", t->device());
                             CHECK(t->is_contiguous(), Value, "data: expected a contiguous tensor");
                             *bytes = static_cast<size_t>(t->numel()) * itemsize(t->dtype());
                             wait_for_copies(t->storage());
                             data = t->data();
                           });
  return status ? nullptr : data;
}

void cresset_memory_stats(cresset_memory* m) {
  cresset::AllocatorStats s = cresset::cpu_allocator_stats();
  m->allocated = static_cast<double>(s.allocated);
  m->reserved = static_cast<double>(s.reserved);
  m->peak_allocated = static_cast<double>(s.peak_allocated);
  m->allocations = static_cast<double>(s.allocations);
  m->cache_hits = static_cast<double>(s.cache_hits);
  m->since_sweep = static_cast<double>(cresset::cpu_allocated_since_sweep());
}
double cresset_bytes_since_sweep() {
  if (cresset::cuda_wants_sweep) [[unlikely]]
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(cresset::cpu_allocated_since_sweep());
}
const int64_t* cresset_sweep_counter() { return cresset::cpu_sweep_counter(); }
void cresset_mark_sweep() {
  cresset::cpu_mark_sweep();
  cresset::cuda_mark_sweep();
}
double cresset_cuda_live_bytes() { return static_cast<double>(cresset::cuda_live_bytes()); }
int32_t cresset_cuda_probe(const char** why, int32_t* devices) {
  const cresset::CudaProbe& probe = cresset::probe_cuda();
  *why = probe.why;
  *devices = probe.device_count;
  return static_cast<int32_t>(probe.status);
}
void cresset_set_cuda_library(const char* path) { cresset::set_cuda_library(path); }
void cresset_empty_cache() { cresset::cpu_empty_cache(); }
void cresset_reset_peak() { cresset::cpu_reset_peak(); }
void cresset_set_memory_limit(double bytes) {
  cresset::cpu_set_memory_limit(static_cast<int64_t>(bytes));
}

void cresset_set_reclaim(int32_t (*hook)(int32_t)) {
  static int32_t (*installed)(int32_t) = nullptr;
  installed = hook;
  cresset::ReclaimHook relay = [](int attempt) { return installed(attempt) != 0; };
  cresset::set_reclaim_hook(hook ? relay : nullptr);
}

int32_t cresset_num_threads() { return cresset::num_threads(); }
void cresset_set_num_threads(int32_t n) { cresset::set_num_threads(n); }

const char* cresset_build_info() {
#ifdef CRESSET_ONEDNN
  return "oneDNN";
#else
  return "own kernels only";
#endif
}
}
