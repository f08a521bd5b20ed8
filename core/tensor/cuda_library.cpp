// Finds the CUDA driver and opens libcresset_cuda.so, or says in a sentence why that fails.
#include <mutex>
#include <string>

#include "core/tensor/device_runtime.h"

#if defined(__linux__) && !defined(__EMSCRIPTEN__)
#define CRESSET_CAN_LOAD 1
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#endif

namespace cresset {
namespace {

struct Library {
  std::string path, why;
  void* handle = nullptr;
  CudaProbe probe;
};
Library& library() {
  static Library* l = new Library;
  return *l;
}

#ifdef CRESSET_CAN_LOAD

constexpr int least_driver = 13000;  // CUDA 13.0, as cuDriverGetVersion counts

std::string version_text(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

CudaStatus fail_probe(CudaStatus status, std::string why) {
  library().why = std::move(why);
  return status;
}

// Asks the driver alone: these calls exist in every version of it.
CudaStatus check_driver(int* count) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver)
    return fail_probe(CudaStatus::NoDriver,
                      "no NVIDIA driver is installed (libcuda.so.1 was not found)");
  using Init = int (*)(unsigned);
  using Get = int (*)(int*);
  auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  auto version = reinterpret_cast<Get>(dlsym(driver, "cuDriverGetVersion"));
  auto device_count = reinterpret_cast<Get>(dlsym(driver, "cuDeviceGetCount"));
  if (!init || !version || !device_count)
    return fail_probe(CudaStatus::NoDriver, "libcuda.so.1 is not an NVIDIA driver");
  int has = 0;
  version(&has);
  if (has < least_driver)
    return fail_probe(CudaStatus::OldDriver, "the NVIDIA driver supports CUDA " +
                                                 version_text(has) + ", expected at least " +
                                                 version_text(least_driver));
  const int status = init(0);
  constexpr int no_device = 100;
  if (status == 0) device_count(count);
  if (status == no_device || (status == 0 && *count == 0)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fail_probe(
        CudaStatus::NoGpu,
        visible ? std::string("no GPU is visible: CUDA_VISIBLE_DEVICES is \"") + visible + "\""
                : "the NVIDIA driver finds no GPU");
  }
  if (status != 0)
    return fail_probe(CudaStatus::Failed, "the NVIDIA driver failed to start: cuInit gave error " +
                                              std::to_string(status));
  return CudaStatus::Ok;
}

// The file of the object that holds this code: the addon, or a program linked with the core.
std::string own_file() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&probe_cuda), &info) || !info.dli_fname) return {};
  return info.dli_fname;
}

// The CUDA library takes symbols of the core from whoever holds it. An addon is loaded with local
// scope, so it is raised to the global one first; a program exports its symbols already.
CudaStatus open_library() {
  Library& l = library();
  const std::string own = own_file();
  dlopen(own.c_str(), RTLD_NOLOAD | RTLD_NOW | RTLD_GLOBAL);
  if (l.path.empty()) l.path = own.substr(0, own.rfind('/') + 1) + "libcresset_cuda.so";
  if (access(l.path.c_str(), R_OK) != 0)
    return fail_probe(
        CudaStatus::NotBuilt,
        "Cresset's CUDA library was not built or not installed (looked for " + l.path + ")");
  l.handle = dlopen(l.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (l.handle) return CudaStatus::Ok;
  const char* message = dlerror();
  std::string text = message ? message : "unknown error";
  const size_t missing = text.find(": cannot open shared object file");
  if (missing != std::string::npos && missing != 0)
    return fail_probe(CudaStatus::MissingLibrary,
                      "the shared library " + text.substr(0, missing) + " was not found");
  return fail_probe(CudaStatus::Failed, "Cresset's CUDA library did not load: " + text);
}

CudaStatus start(int* count) {
  CudaStatus status = check_driver(count);
  if (status == CudaStatus::Ok) status = open_library();
  if (status != CudaStatus::Ok) return status;
  using Open = DeviceRuntime* (*)();
  auto open = reinterpret_cast<Open>(dlsym(library().handle, "cresset_cuda_open"));
  if (!open)
    return fail_probe(CudaStatus::Failed, library().path + " is not Cresset's CUDA library");
  try {
    opened_cuda_runtime = open();
  } catch (const std::exception& e) {
    return fail_probe(CudaStatus::Failed, std::string("CUDA did not start: ") + e.what());
  }
  return CudaStatus::Ok;
}

#else

CudaStatus start(int*) {
  library().why = "this build of Cresset cannot use CUDA";
  return CudaStatus::NotBuilt;
}

#endif

}  // namespace

const CudaProbe& probe_cuda() noexcept {
  static std::once_flag once;
  std::call_once(once, [] {
    Library& l = library();
    l.probe.status = start(&l.probe.device_count);
    l.probe.why = l.why.c_str();
    if (l.probe.status != CudaStatus::Ok) l.probe.device_count = 0;
  });
  return library().probe;
}

void set_cuda_library(const char* path) { library().path = path; }

void* cuda_symbol([[maybe_unused]] const char* name) noexcept {
#ifdef CRESSET_CAN_LOAD
  if (probe_cuda().status == CudaStatus::Ok) return dlsym(library().handle, name);
#endif
  return nullptr;
}

}  // namespace cresset
