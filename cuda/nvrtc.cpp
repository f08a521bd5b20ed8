// Kernels compiled at run time: NVRTC, with a cache of cubins on disk.
#include "cuda/nvrtc.h"

#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include <map>
#include <mutex>
#include <vector>

#include "cuda/check.h"
#include "cuda/disk_cache.h"
#include "cuda/scopes.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

struct Text {
  const char* name;
  std::string_view text;
};
constexpr Text texts[] = {
#include "embedded_texts.inc"
};

// The driver's functions, found through the runtime: libcuda.so is never linked.
struct Driver {
  decltype(&cuModuleLoadData) load_module = nullptr;
  decltype(&cuModuleGetFunction) get_function = nullptr;
  decltype(&cuLaunchKernelEx) launch = nullptr;

  template <class F> static void find(const char* name, F& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    if (!found) fail(ErrorKind::Internal, "cuda: the driver lacks ", name);
    function = reinterpret_cast<F>(found);
  }
  Driver() {
    find("cuModuleLoadData", load_module);
    find("cuModuleGetFunction", get_function);
    find("cuLaunchKernelEx", launch);
  }
};
const Driver& driver() {
  static const Driver* d = new Driver;
  return *d;
}

// Note [Overlapping launches]
// Before a kernel, the driver queues a wait for all that came before. From compute capability 9.0
// on the kernel may wait instead, as its first instruction (wait_for_stream() in texts/memory.cuh):
// such a launch takes the host a fifteenth less. Every thread of a kernel must wait, so that a
// kernel ends after those before it. Nothing changes for the kernels of others.
// In a capture the graph's own dependencies serve.

// The driver's calls need the device's context on this thread; the runtime makes it current.
void bind_context(ThreadState& t) {
  if (t.bound == t.device) [[likely]]
    return;
  int major = 0;
  CUDA_CHECK(cudaSetDevice(t.device));
  CUDA_CHECK(cudaFree(nullptr));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, t.device));
  t.overlaps = major >= 9;
  t.bound = t.device;
}

std::string architecture(int device) {
  int major = 0, minor = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

struct Loaded {
  std::mutex mutex;
  std::map<std::string, CUmodule> modules;
  std::string arch[64];
};
Loaded& loaded() {
  static Loaded* l = new Loaded;
  return *l;
}

}  // namespace

std::string_view embedded_text(std::string_view name) {
  for (const Text& t : texts)
    if (t.name == name) return t.text;
  fail(ErrorKind::Internal, "cuda: no embedded text ", std::string(name));
}

std::string compile(const std::string& source, const std::string& arch) {
  nvrtcProgram program = nullptr;
  LIBRARY_CHECK("NVRTC",
                nvrtcCreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  const std::string arch_option = "-arch=" + arch;
  const char* options[] = {arch_option.c_str(), "-default-device", "--std=c++20", "-w"};
  const nvrtcResult status =
      nvrtcCompileProgram(program, sizeof(options) / sizeof(options[0]), options);
  std::string result;
  size_t bytes = 0;
  if (status == NVRTC_SUCCESS) {
    nvrtcGetCUBINSize(program, &bytes);
    result.resize(bytes);
    nvrtcGetCUBIN(program, result.data());
  } else {
    nvrtcGetProgramLogSize(program, &bytes);
    result.resize(bytes);
    nvrtcGetProgramLog(program, result.data());
  }
  nvrtcDestroyProgram(&program);
  if (status != NVRTC_SUCCESS)
    fail(ErrorKind::Internal, launching_op(), ": NVRTC error ", static_cast<int>(status), " for ",
         arch, ": ", result);
  return result;
}

std::string kernel_key(const std::string& source, const std::string& arch) {
  return hash_text(source + "|" + arch + "|" + nvrtc_version());
}

CUfunction load_kernel(const std::string& source, const char* entry) {
  bind_context(thread_state);
  const RelaxedCapture relaxed;
  Loaded& l = loaded();
  std::lock_guard lock(l.mutex);
  const int device = current_device();
  std::string& arch = l.arch[device];
  if (arch.empty()) arch = architecture(device);
  const std::string key = kernel_key(source, arch);
  CUmodule& module = l.modules[key + "-" + std::to_string(device)];
  if (!module) {
    std::optional<std::string> cubin = DiskCache::shipped().get(key);
    if (!cubin) cubin = DiskCache::standard().get(key);
    if (cubin && driver().load_module(&module, cubin->data()) != CUDA_SUCCESS) cubin.reset();
    if (!cubin) {
      cubin = compile(source, arch);
      LIBRARY_CHECK("CUDA driver", driver().load_module(&module, cubin->data()));
      DiskCache::standard().put(key, *cubin);
    }
  }
  CUfunction function = nullptr;
  LIBRARY_CHECK("CUDA driver", driver().get_function(&function, module, entry));
  return function;
}

static constexpr CUlaunchAttribute overlap = [] {
  CUlaunchAttribute a = {};
  a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  a.value.programmaticStreamSerializationAllowed = 1;
  return a;
}();

void launch_kernel(CUfunction kernel, unsigned blocks_x, unsigned blocks_y, unsigned threads_x,
                   unsigned threads_y, void** args) {
  ThreadState& t = thread_state;
  bind_context(t);
  const CUlaunchConfig config = {.gridDimX = blocks_x,
                                 .gridDimY = blocks_y,
                                 .gridDimZ = 1,
                                 .blockDimX = threads_x,
                                 .blockDimY = threads_y,
                                 .blockDimZ = 1,
                                 .sharedMemBytes = 0,
                                 .hStream = current_stream(t, t.device),
                                 .attrs = const_cast<CUlaunchAttribute*>(&overlap),
                                 .numAttrs = t.overlaps && !t.capturing ? 1u : 0u};
  LIBRARY_CHECK("CUDA driver", driver().launch(&config, kernel, args, nullptr));
}

}  // namespace cresset::cuda
