// Marks what the CUDA library takes from the object that holds the core.
#pragma once

// The core is built with hidden symbols; libcresset_cuda.so resolves these from the addon or the
// program that opened it.
#if defined(__EMSCRIPTEN__)
#define CRESSET_API
#else
#define CRESSET_API __attribute__((visibility("default")))
#endif
