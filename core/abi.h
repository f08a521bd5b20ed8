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

/// Forgets the host's handle; the tensor lives on while anything else holds it.
void cresset_free(cresset_env*, uint32_t id);
int64_t cresset_live(cresset_env*);
/// Doubles that a frame must have at least.
uint32_t cresset_frame_capacity(void);

/// The tensor's bytes, contiguous CPU tensors only; null with an error otherwise.
void* cresset_data(cresset_env*, uint32_t id, size_t* bytes);

/// Memory counters of the CPU allocator, in bytes.
typedef struct {
  double allocated, reserved, peak_allocated, allocations, cache_hits, since_sweep;
} cresset_memory;
void cresset_memory_stats(cresset_memory*);
/// Of the CPU; infinity when a CUDA device has handed out its budget.
double cresset_bytes_since_sweep(void);
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
