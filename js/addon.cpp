// The Node-API binding: calls by operator number through the frame, and the memory policy.
#include <node_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "core/abi.h"

namespace {

constexpr double default_budget = 64.0 * 1024 * 1024;
// More would not fit the caches, and V8 would keep their callbacks in blocks that malloc gives back
// to the system at every sweep.
constexpr size_t max_young = 2048;

/// A tensor id and the weak reference to the JavaScript object that holds it.
struct Held {
  double id;
  napi_ref ref;
  uint8_t age;
};

/// State of one JavaScript realm (main thread or worker).
struct Realm {
  napi_env env = nullptr;
  cresset_env* core = nullptr;
  double* frame = nullptr;
  napi_ref frame_ref = nullptr, make_error = nullptr, gc_minor = nullptr, gc_full = nullptr;
  std::vector<Held> young, old;
  std::vector<size_t> scopes;  // of each open scope: its handles without a weak reference
  double budget = default_budget, floor = default_budget;
  bool collecting = false;
  std::chrono::steady_clock::time_point last_sweep = {};
  std::chrono::steady_clock::duration sweep_cost = std::chrono::microseconds(250);
  uint64_t minor_collections = 0, full_collections = 0;
};

thread_local Realm* current = nullptr;

/// The realm of a call, and its arguments; those that were not given are undefined.
template <size_t N> Realm& arguments(napi_env env, napi_callback_info info, napi_value (&argv)[N]) {
  size_t argc = N;
  void* data = nullptr;
  napi_get_cb_info(env, info, &argc, argv, nullptr, &data);
  return *static_cast<Realm*>(data);
}

Realm& realm_of(napi_env env, napi_callback_info info) {
  napi_value none[1];
  return arguments(env, info, none);
}

/// The value as a number, or `fallback` if it is none.
double number(napi_env env, napi_value value, double fallback) {
  double result = fallback;
  napi_get_value_double(env, value, &result);
  return result;
}

// ---- errors

void throw_status(Realm& r, int32_t status) {
  napi_value factory, undefined, args[2], error;
  if (napi_get_reference_value(r.env, r.make_error, &factory) != napi_ok) return;
  napi_get_undefined(r.env, &undefined);
  napi_create_int32(r.env, status - 1, &args[0]);
  napi_create_string_utf8(r.env, cresset_error(), NAPI_AUTO_LENGTH, &args[1]);
  if (napi_call_function(r.env, undefined, factory, 2, args, &error) == napi_ok)
    napi_throw(r.env, error);
}

// ---- memory policy: see Note [Memory policy]

void run_gc(Realm& r, napi_ref which) {
  napi_value gc, undefined, result;
  if (!which || napi_get_reference_value(r.env, which, &gc) != napi_ok || !gc) return;
  napi_get_undefined(r.env, &undefined);
  napi_call_function(r.env, undefined, gc, 0, nullptr, &result);
}

void forget(Realm& r, const Held& h) {
  napi_delete_reference(r.env, h.ref);
  cresset_free(r.core, h.id);
}

bool is_dead(Realm& r, const Held& h) {
  napi_value value = nullptr;
  napi_get_reference_value(r.env, h.ref, &value);
  return value == nullptr;
}

// Frees what the collector found dead. Survivors of two sweeps are old.
void sweep(Realm& r, std::vector<Held>& list, bool promote) {
  napi_handle_scope scope;
  napi_open_handle_scope(r.env, &scope);
  size_t kept = 0, batch = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (++batch == 1024) {
      napi_close_handle_scope(r.env, scope);
      napi_open_handle_scope(r.env, &scope);
      batch = 0;
    }
    Held& h = list[i];
    if (is_dead(r, h)) {
      forget(r, h);
    } else if (promote && ++h.age >= 2) {
      r.old.push_back(h);
    } else {
      list[kept++] = h;
    }
  }
  list.resize(kept);
  napi_close_handle_scope(r.env, scope);
}

double allocated() {
  cresset_memory m;
  cresset_memory_stats(&m);
  return m.allocated;
}

// Asks for a scavenge and, if most bytes or handles survive it, a full collection.
void collect_and_sweep(Realm& r, bool full) {
  double before = allocated(), cuda_before = cresset_cuda_live_bytes();
  size_t handles = r.young.size() + r.old.size();
  if (!full) {
    ++r.minor_collections;
    run_gc(r, r.gc_minor);
    sweep(r, r.young, true);
    bool bytes_stay = before > r.budget && allocated() > 0.75 * before;
    bool handles_stay =
        r.young.size() > max_young / 2 && r.young.size() + r.old.size() > handles - handles / 4;
    bool cuda_stays = cuda_before > r.floor && cresset_cuda_live_bytes() > 0.75 * cuda_before;
    full = bytes_stay || handles_stay || cuda_stays;
  }
  if (full) {
    ++r.full_collections;
    run_gc(r, r.gc_full);
    sweep(r, r.young, true);
    sweep(r, r.old, false);
  }
}

void collect(Realm& r, bool full) {
  if (r.collecting) return;
  r.collecting = true;
  napi_handle_scope scope;
  napi_open_handle_scope(r.env, &scope);
  auto start = std::chrono::steady_clock::now();
  collect_and_sweep(r, full);
  double wanted = 2 * allocated();
  r.budget = wanted > r.floor ? wanted : r.floor;
  cresset_mark_sweep();
  napi_close_handle_scope(r.env, scope);
  r.last_sweep = std::chrono::steady_clock::now();
  // One slow collection (the first one is) says little; a row of them doubles the estimate.
  r.sweep_cost = std::min(r.last_sweep - start, 2 * r.sweep_cost);
  r.collecting = false;
}

// Whether a sweep now would cost at most a fiftieth of the time since the last one. Early sweeps
// keep the memory in use small, and new memory is dear: its first touch costs more than most
// kernels.
bool is_cheap(const Realm& r) {
  return std::chrono::steady_clock::now() - r.last_sweep >= 50 * r.sweep_cost;
}

inline void poll(Realm& r) {
  double bytes = cresset_bytes_since_sweep();
  if (bytes < r.floor / 4 && r.young.size() < max_young) [[likely]]
    return;
  if (bytes >= r.budget || r.young.size() >= max_young || is_cheap(r)) collect(r, false);
}

int32_t reclaim(int32_t attempt) {
  if (!current || attempt > 1) return 0;
  double before = allocated() + cresset_cuda_live_bytes();
  collect(*current, attempt == 1);
  return attempt == 0 || allocated() + cresset_cuda_live_bytes() < before;
}

// ---- calls

// The first handles of a scope need no weak reference: its end frees them. The later ones of a long
// scope have one, so that it runs in bounded memory as well.
inline bool left_to_scope(Realm& r) {
  if (r.scopes.empty()) return false;
  size_t& count = r.scopes.back();
  if (count == max_young) return false;
  count = cresset_bytes_since_sweep() < r.floor / 4 ? count + 1 : max_young;
  return true;
}

void hold(Realm& r, double id, napi_value object) {
  napi_ref ref;
  if (napi_create_reference(r.env, object, 0, &ref) == napi_ok) r.young.push_back({id, ref, 0});
}

int32_t invoke(Realm& r, napi_value op_value) {
  uint32_t op = 0;
  napi_get_value_uint32(r.env, op_value, &op);
  current = &r;
  int32_t status = cresset_call(r.core, op, r.frame);
  if (status) [[unlikely]]
    throw_status(r, status);
  return status;
}

/// call(op): results stay in the frame.
napi_value call(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  if (invoke(r, argv[0]) == 0) poll(r);
  return nullptr;
}

/// callInto(op, out): the result tensor belongs to the object `out`.
napi_value call_into(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  Realm& r = arguments(env, info, argv);
  if (invoke(r, argv[0]) != 0) return nullptr;
  if (!left_to_scope(r)) hold(r, r.frame[1], argv[1]);
  poll(r);
  return nullptr;
}

/// adopt(id, object): ties an id to the object that holds it from now on.
napi_value adopt(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  Realm& r = arguments(env, info, argv);
  const double id = number(env, argv[0], -1);
  bool scoped = cresset_scope_of(r.core, id) > 0;
  if (!scoped || !left_to_scope(r)) hold(r, id, argv[1]);
  return nullptr;
}

/// free(id): dispose(). The weak reference goes at the next sweep; the id is dead at once.
napi_value free_handle(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  cresset_free(r.core, number(env, argv[0], -1));
  return nullptr;
}

// The bytes of a tensor and of a typed array of the same length; false after throwing.
bool two_buffers(napi_env env, napi_callback_info info, void** tensor, void** array,
                 size_t* bytes) {
  napi_value argv[2];
  Realm& r = arguments(env, info, argv);
  *tensor = cresset_data(r.core, number(env, argv[0], -1), bytes);
  if (!*tensor && *bytes) {
    throw_status(r, 5);
    return false;
  }
  napi_typedarray_type type;
  size_t length = 0;
  napi_get_typedarray_info(env, argv[1], &type, &length, array, nullptr, nullptr);
  if (type != napi_uint8_array || length < *bytes) {
    napi_throw_range_error(env, nullptr, "data: the array is shorter than the tensor");
    return false;
  }
  return true;
}

/// read(id, bytes: Uint8Array)
napi_value read(napi_env env, napi_callback_info info) {
  void *tensor, *array = nullptr;
  size_t bytes = 0;
  if (two_buffers(env, info, &tensor, &array, &bytes) && bytes) std::memcpy(array, tensor, bytes);
  return nullptr;
}

/// write(id, bytes: Uint8Array)
napi_value write(napi_env env, napi_callback_info info) {
  void *tensor, *array = nullptr;
  size_t bytes = 0;
  if (two_buffers(env, info, &tensor, &array, &bytes) && bytes) std::memcpy(tensor, array, bytes);
  return nullptr;
}

napi_value numbers(napi_env env, const double* values, size_t count) {
  napi_value list;
  napi_create_array_with_length(env, count, &list);
  for (uint32_t i = 0; i < count; ++i) {
    napi_value v;
    napi_create_double(env, values[i], &v);
    napi_set_element(env, list, i, v);
  }
  return list;
}

// ---- scopes

/// beginScope(): its depth.
napi_value begin_scope(napi_env env, napi_callback_info info) {
  Realm& r = realm_of(env, info);
  r.scopes.push_back(0);
  napi_value depth;
  napi_create_uint32(env, cresset_scope_begin(r.core), &depth);
  return depth;
}

// The scope depth given as the only argument; 0 if it is not that of an open scope.
uint32_t depth_argument(const Realm& r, napi_value value) {
  const double depth = number(r.env, value, 0);
  const bool open = depth >= 1 && depth <= static_cast<double>(r.scopes.size());
  return open ? static_cast<uint32_t>(depth) : 0;
}

/// endScope(depth): the frame lists the survivors and comes back as cresset_scope_end says.
napi_value end_scope(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  uint32_t depth = depth_argument(r, argv[0]);
  if (depth == 0) return nullptr;
  cresset_scope_end(r.core, depth, r.frame);
  r.scopes.resize(depth - 1);
  return nullptr;
}

/// keep(): takes the handles that the frame lists out of every scope.
napi_value keep(napi_env env, napi_callback_info info) {
  Realm& r = realm_of(env, info);
  cresset_keep(r.core, r.frame);
  return nullptr;
}

napi_value scope_ids(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  uint32_t depth = depth_argument(r, argv[0]), count = 0;
  const double* ids = depth ? cresset_scope_ids(r.core, depth, &count) : nullptr;
  return numbers(env, ids, count);
}

/// scopeOf(id): the depth of its scope, 0 for none, -1 for a freed handle.
napi_value scope_of(napi_env env, napi_callback_info info) {
  napi_value argv[1], result;
  Realm& r = arguments(env, info, argv);
  napi_create_int32(env, cresset_scope_of(r.core, number(env, argv[0], -1)), &result);
  return result;
}

// ---- settings and counters

napi_value set_frame(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  size_t length = 0;
  void* data = nullptr;
  napi_typedarray_type type;
  napi_get_typedarray_info(env, argv[0], &type, &length, &data, nullptr, nullptr);
  if (type != napi_float64_array || length < cresset_frame_capacity()) {
    napi_throw_range_error(env, nullptr, "frame: expected a longer Float64Array");
    return nullptr;
  }
  if (r.frame_ref) napi_delete_reference(env, r.frame_ref);
  napi_create_reference(env, argv[0], 1, &r.frame_ref);
  r.frame = static_cast<double*>(data);
  return nullptr;
}

/// setHooks(makeError, gcMinor | null, gcFull | null)
napi_value set_hooks(napi_env env, napi_callback_info info) {
  napi_value argv[3];
  Realm& r = arguments(env, info, argv);
  napi_ref* slots[] = {&r.make_error, &r.gc_minor, &r.gc_full};
  for (size_t i = 0; i < 3; ++i) {
    napi_valuetype type;
    napi_typeof(env, argv[i], &type);
    if (*slots[i]) napi_delete_reference(env, *slots[i]);
    *slots[i] = nullptr;
    if (type == napi_function) napi_create_reference(env, argv[i], 1, slots[i]);
  }
  return nullptr;
}

/// collect(full): sweeps now. hint(): sweeps when a quarter of the least budget has gone, unless
/// a scope is about to free most of it.
napi_value collect_now(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  bool full = false;
  napi_get_value_bool(env, argv[0], &full);
  collect(r, full);
  return nullptr;
}

napi_value hint(napi_env env, napi_callback_info info) {
  Realm& r = realm_of(env, info);
  if (r.scopes.empty() && cresset_bytes_since_sweep() >= r.floor / 4) collect(r, false);
  return nullptr;
}

napi_value set_budget(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  Realm& r = arguments(env, info, argv);
  r.floor = r.budget = number(env, argv[0], default_budget);
  return nullptr;
}

/// stats(): numbers in the order that memory.ts names.
napi_value stats(napi_env env, napi_callback_info info) {
  Realm& r = realm_of(env, info);
  cresset_memory m;
  cresset_memory_stats(&m);
  double values[] = {m.allocated,
                     m.reserved,
                     m.peak_allocated,
                     m.allocations,
                     m.cache_hits,
                     r.budget,
                     static_cast<double>(cresset_live(r.core)),
                     static_cast<double>(r.minor_collections),
                     static_cast<double>(r.full_collections),
                     m.since_sweep};
  return numbers(env, values, sizeof(values) / sizeof(double));
}

napi_value empty_cache(napi_env, napi_callback_info) {
  cresset_empty_cache();
  return nullptr;
}

napi_value reset_peak(napi_env, napi_callback_info) {
  cresset_reset_peak();
  return nullptr;
}

napi_value set_limit(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  arguments(env, info, argv);
  cresset_set_memory_limit(number(env, argv[0], 0));
  return nullptr;
}

/// threads(n?): sets the number of CPU threads when given; returns it.
napi_value threads(napi_env env, napi_callback_info info) {
  napi_value argv[1], result;
  int32_t n = 0;
  arguments(env, info, argv);
  if (napi_get_value_int32(env, argv[0], &n) == napi_ok) cresset_set_num_threads(n);
  napi_create_int32(env, cresset_num_threads(), &result);
  return result;
}

napi_value text(napi_env env, const char* s) {
  napi_value result;
  napi_create_string_utf8(env, s, NAPI_AUTO_LENGTH, &result);
  return result;
}
napi_value snapshot(napi_env env, napi_callback_info info) {
  return text(env, cresset_snapshot(realm_of(env, info).core));
}
napi_value schemas(napi_env env, napi_callback_info) { return text(env, cresset_schemas()); }
napi_value build_info(napi_env env, napi_callback_info) { return text(env, cresset_build_info()); }

napi_value roll_hash(napi_env env, napi_callback_info) {
  napi_value result;
  napi_create_uint32(env, cresset_roll_hash(), &result);
  return result;
}

// The environment is going away (process end, worker.terminate()): references die with it.
void teardown(void* data) {
  Realm* r = static_cast<Realm*>(data);
  if (current == r) current = nullptr;
  cresset_env_delete(r->core);
  delete r;
}

}  // namespace

NAPI_MODULE_INIT() {
  Realm* r = new Realm;
  r->env = env;
  r->core = cresset_env_new();
  napi_add_env_cleanup_hook(env, teardown, r);
  cresset_set_reclaim(reclaim);
  constexpr struct {
    const char* name;
    napi_callback function;
  } functions[] = {{"call", call},
                   {"callInto", call_into},
                   {"adopt", adopt},
                   {"free", free_handle},
                   {"beginScope", begin_scope},
                   {"endScope", end_scope},
                   {"keep", keep},
                   {"scopeIds", scope_ids},
                   {"scopeOf", scope_of},
                   {"snapshot", snapshot},
                   {"read", read},
                   {"write", write},
                   {"setFrame", set_frame},
                   {"setHooks", set_hooks},
                   {"collect", collect_now},
                   {"hint", hint},
                   {"setBudget", set_budget},
                   {"stats", stats},
                   {"emptyCache", empty_cache},
                   {"resetPeak", reset_peak},
                   {"setLimit", set_limit},
                   {"threads", threads},
                   {"schemas", schemas},
                   {"rollHash", roll_hash},
                   {"buildInfo", build_info}};
  for (const auto& f : functions) {
    napi_value v;
    napi_create_function(env, f.name, NAPI_AUTO_LENGTH, f.function, r, &v);
    napi_set_named_property(env, exports, f.name, v);
  }
  return exports;
}

// Note [Memory policy]
// A tensor's JavaScript object is held by a weak reference without a finalizer, because finalizers
// never run in a synchronous loop. When the bytes allocated since the last sweep reach the budget
// (or 16 MiB, if sweeps are cheap), or young handles their limit, the collector is asked
// for a scavenge and the references are polled: dead ones free their tensor. If most bytes survive,
// a full collection follows. The budget is twice the live bytes, at least 64 MiB. Sweeps happen
// only after an operator has taken its arguments out of the frame, so an object that is dead to the
// collector is dead to the call.
