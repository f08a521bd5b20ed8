// What CUDA alone reaches: launches, cuBLASLt and the copy bandwidth; speaks the protocol of
// serve.ts.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::cout << R"({"error":")" << what << R"("})" << std::endl;
  std::exit(1);
}

#define CUDA_CHECK(call) check((call) == cudaSuccess, #call)
#define LIBRARY_CHECK(call) check((call) == CUBLAS_STATUS_SUCCESS, #call)

__global__ void add4(const float* a, const float* b, float* c) {
  if (threadIdx.x < 4) c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

float* device_floats(size_t n) {
  float* p = nullptr;
  CUDA_CHECK(cudaMalloc(&p, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(p, 0x3c, n * sizeof(float)));
  return p;
}

/// Nanoseconds of one call, averaged over as long as serve.ts measures and waited for at the end.
double measure(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int calls = 0;
  std::chrono::duration<double, std::nano> spent{};
  for (int batch = 1; spent.count() < 100e6; batch *= 2) {
    for (int i = 0; i < batch; ++i) work();
    CUDA_CHECK(cudaDeviceSynchronize());
    calls += batch;
    spent = Clock::now() - begin;
  }
  return spent.count() / calls;
}

std::function<void()> launch() {
  float *a = device_floats(4), *b = device_floats(4), *c = device_floats(4);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return [=] { add4<<<1, 32, 0, stream>>>(a, b, c); };
}

/// One square float32 product with its algorithm chosen beforehand.
std::function<void()> product(int n) {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulPreference_t preference;
  const size_t workspace_bytes = size_t{32} << 20;
  void* workspace = device_floats(workspace_bytes / sizeof(float));
  LIBRARY_CHECK(cublasLtCreate(&handle));
  LIBRARY_CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LIBRARY_CHECK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, n, n, n));
  LIBRARY_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  LIBRARY_CHECK(cublasLtMatmulPreferenceSetAttribute(preference,
                                                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &workspace_bytes, sizeof(workspace_bytes)));
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  LIBRARY_CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout, layout, layout, layout,
                                               preference, 1, &found, &count));
  check(count == 1, "cublasLtMatmulAlgoGetHeuristic found nothing");
  const size_t size = static_cast<size_t>(n) * n;
  float *a = device_floats(size), *b = device_floats(size), *c = device_floats(size);
  return [=] {
    const float one = 1, zero = 0;
    LIBRARY_CHECK(cublasLtMatmul(handle, operation, &one, a, layout, b, layout, &zero, c, layout, c,
                                 layout, &found.algo, workspace, workspace_bytes, nullptr));
  };
}

/// Moves `gib` GiB through memory, reads and writes counted, by device-to-device copies.
std::function<void()> traffic(double gib) {
  static const size_t most = size_t{1} << 30;
  static float *from = device_floats(most / 4), *to = device_floats(most / 4);
  const size_t bytes = static_cast<size_t>(gib / 2 * static_cast<double>(size_t{1} << 30));
  return [=] {
    for (size_t left = bytes; left > 0; left -= std::min(left, most))
      CUDA_CHECK(
          cudaMemcpyAsync(to, from, std::min(left, most), cudaMemcpyDeviceToDevice, nullptr));
  };
}

}  // namespace

int main() {
  const std::map<std::string, std::function<std::function<void()>()>> rows = {
      {"add.enqueue", launch},
      {"matmul.64", [] { return product(64); }},
      {"add.1GiB", [] { return traffic(3); }},
      {"exp.1GiB", [] { return traffic(2); }},
      {"gelu.1GiB", [] { return traffic(2); }},
      {"sum.1GiB", [] { return traffic(1); }},
      {"softmax.1GiB", [] { return traffic(2); }},
      {"layerNorm.1GiB", [] { return traffic(2); }},
  };
  int version = 0;
  check(cudaRuntimeGetVersion(&version) == cudaSuccess, "no CUDA runtime");
  std::cout << R"({"version":"CUDA )" << version / 1000 << '.' << version % 1000 / 10
            << R"(","rows":[)";
  const char* comma = "";
  for (const auto& [name, make] : rows) {
    std::cout << comma << '"' << name << '"';
    comma = ",";
  }
  std::cout << "]}" << std::endl;
  std::map<std::string, std::function<void()>> ready;
  for (std::string name; std::getline(std::cin, name);) {
    if (!rows.count(name)) {
      std::cout << R"({"error":"no such row"})" << std::endl;
      continue;
    }
    auto& work = ready[name];
    if (!work) {
      work = rows.at(name)();
      measure(work);
    }
    std::cout << R"({"ns":)" << measure(work) << '}' << std::endl;
  }
}
