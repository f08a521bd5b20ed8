// The C interface through which every host language calls the core.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The tensors of one host environment (a JavaScript realm).
typedef struct cresset_env cresset_env;

cresset_env* cresset_env_new(void);
void cresset_env_delete(cresset_env*);

/// Calls operator `op` with the frame `slots`; 0, or 1 + error kind with the message in
/// cresset_error(). See Note [Frame encoding].
int32_t cresset_call(cresset_env*, uint32_t op, double* slots);
const char* cresset_error(void);
uint32_t cresset_op_count(void);
const char* cresset_op_name(uint32_t op);
/// Changes whenever an operator's number or name does.
uint32_t cresset_roll_hash(void);
/// All schemas as JSON; valid until the next call on this thread.
const char* cresset_schemas(void);

/// Forgets the host's handle; the tensor lives on while anything else holds it. Harmless for an id
/// that is free already, for ever: ids are not used twice.
void cresset_free(cresset_env*, double id);
int64_t cresset_live(cresset_env*);

/// Opens a scope and returns its depth, 1 for the outermost; new handles belong to the innermost.
uint32_t cresset_scope_begin(cresset_env*);
/// Ends the scope of this depth and those inside it: frees their handles. The frame lists the
/// survivors (count, then ids), which move to the scope around; it comes back with -1 in place of
/// those that were of no ended scope.
void cresset_scope_end(cresset_env*, uint32_t depth, double* slots);
/// Depth of the scope that will free the handle: 0 for none, -1 for a handle that is free.
int32_t cresset_scope_of(cresset_env*, double id);
/// Takes the handles that the frame lists out of every scope; -1 comes back for those in none.
void cresset_keep(cresset_env*, double* slots);
/// The handles of the scope of this depth and of those inside it; valid until the next call.
const double* cresset_scope_ids(cresset_env*, uint32_t depth, uint32_t* count);
/// All live handles as JSON: dtype, shape, bytes, storage of each; valid until the next call.
const char* cresset_snapshot(cresset_env*);

/// Doubles that a frame must have at least.
uint32_t cresset_frame_capacity(void);

/// The tensor's bytes, contiguous CPU tensors only; null with an error otherwise.
void* cresset_data(cresset_env*, double id, size_t* bytes);

/// Memory counters of the CPU allocator, in bytes.
typedef struct {
  double allocated, reserved, peak_allocated, allocations, cache_hits, since_sweep;
} cresset_memory;
void cresset_memory_stats(cresset_memory*);
/// Of the CPU; infinity when a CUDA device has handed out its budget.
double cresset_bytes_since_sweep(void);
/// Where the CPU's part of that number is kept, for hosts that read memory faster than they call.
const int64_t* cresset_sweep_counter(void);
void cresset_mark_sweep(void);
/// Bytes in live tensors of all CUDA devices.
double cresset_cuda_live_bytes(void);
/// Opens CUDA at the first call: 0 when it can be used, else the kind of failure and a sentence.
int32_t cresset_cuda_probe(const char** why, int32_t* devices);
/// Where libcresset_cuda.so lies if not beside the addon; before the first use.
void cresset_set_cuda_library(const char* path);
void cresset_empty_cache(void);
void cresset_reset_peak(void);
void cresset_set_memory_limit(double bytes);
/// Called when memory runs out; returns whether something was freed.
void cresset_set_reclaim(int32_t (*hook)(int32_t attempt));

int32_t cresset_num_threads(void);
void cresset_set_num_threads(int32_t n);
const char* cresset_build_info(void);

#ifdef __cplusplus
}
#endif
