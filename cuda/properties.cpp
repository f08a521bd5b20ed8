// What a device is, as JSON.
#include "cuda/properties.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <sstream>

#include "cuda/check.h"

namespace cresset::cuda {
namespace {

std::string uuid_text(const cudaUUID_t& id) {
  std::string out;
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%02x", static_cast<unsigned char>(id.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += byte;
  }
  return out;
}

}  // namespace

std::string properties_json(int device) {
  cudaDeviceProp p;
  CUDA_CHECK(cudaGetDeviceProperties(&p, device));
  std::ostringstream out;
  out << "{\"name\":\"" << p.name << "\",\"major\":" << p.major << ",\"minor\":" << p.minor
      << ",\"totalMemory\":" << p.totalGlobalMem
      << ",\"multiProcessorCount\":" << p.multiProcessorCount
      << ",\"maxThreadsPerMultiProcessor\":" << p.maxThreadsPerMultiProcessor
      << ",\"maxThreadsPerBlock\":" << p.maxThreadsPerBlock << ",\"warpSize\":" << p.warpSize
      << ",\"regsPerMultiprocessor\":" << p.regsPerMultiprocessor
      << ",\"sharedMemoryPerBlock\":" << p.sharedMemPerBlock
      << ",\"sharedMemoryPerBlockOptin\":" << p.sharedMemPerBlockOptin
      << ",\"sharedMemoryPerMultiprocessor\":" << p.sharedMemPerMultiprocessor
      << ",\"L2CacheSize\":" << p.l2CacheSize
      << ",\"isIntegrated\":" << (p.integrated ? "true" : "false")
      << ",\"isMultiGpuBoard\":" << (p.isMultiGpuBoard ? "true" : "false")
      << ",\"pciBusId\":" << p.pciBusID << ",\"pciDeviceId\":" << p.pciDeviceID
      << ",\"pciDomainId\":" << p.pciDomainID << ",\"uuid\":\"" << uuid_text(p.uuid) << "\"}";
  return out.str();
}

}  // namespace cresset::cuda
