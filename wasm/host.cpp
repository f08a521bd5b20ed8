// The WebAssembly module's own exports and imports beside the C interface of the core.
#include "core/abi.h"
#include "core/cpu/thread_pool.h"

#include <cstddef>

extern "C" {

/// The C library's copy of large blocks. By default it is JavaScript's, whose view of shared memory
/// may be older than the last growth on another thread. This file is compiled with bulk memory, so
/// the call below is one instruction.
void* emscripten_memcpy_big(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}

/// Thread-local objects live as long as their thread, and no thread of the module ends.
/// Emscripten's own version traps at the first such object.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }

/// The host's memory policy: frees dead tensors when memory runs out; see cresset_set_reclaim.
__attribute__((import_module("host"), import_name("reclaim"))) int32_t cresset_host_reclaim(
    int32_t attempt);

/// Called once, before anything else.
void cresset_module_start(void) {
  cresset_set_reclaim([](int32_t attempt) { return cresset_host_reclaim(attempt); });
}

#ifdef __EMSCRIPTEN_PTHREADS__
/// The life of a helping thread: never returns.
void cresset_thread_main(void) { cresset::thread_pool().help(); }
/// Threads that have come up so far, the caller included.
int32_t cresset_threads_ready(void) { return cresset::thread_pool().helpers() + 1; }
#endif
}
