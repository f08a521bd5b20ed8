// What torch.cuda asks of memory: statistics, settings, pools, pinned tensors.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/cuda_report.h"
#include "core/ops/ops.h"
#include "core/tensor/cuda_services.h"

namespace cresset::ops {
namespace {

int checked(int64_t device) {
  CHECK(device >= -1 && device < max_cuda_devices, Value,
        "device: expected the number of a CUDA device, got ", device);
  return resolve_device({DeviceType::CUDA, static_cast<int8_t>(device)}).index;
}

// A path comes as its UTF-8 bytes.
std::string path_of(const Dims& bytes) {
  std::string path;
  for (const int64_t b : bytes) path += static_cast<char>(b);
  return path;
}

Dims memory_info(int64_t device) {
  size_t free = 0, total = 0;
  cuda_services().memory_info(checked(device), &free, &total);
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}
Tensor memory_stats(int64_t device) {
  return text_tensor(cuda_services().memory_stats(checked(device)));
}
Tensor memory_snapshot() { return text_tensor(cuda_services().memory_snapshot()); }
void reset_memory_stats(int64_t device, bool peaks) {
  cuda_services().reset_memory_stats(checked(device), peaks);
}
void set_memory_fraction(int64_t device, double fraction) {
  CHECK(fraction >= 0 && fraction <= 1, Value,
        "setPerProcessMemoryFraction: expected a fraction in [0, 1], got ", fraction);
  cuda_services().set_memory_fraction(checked(device), fraction);
}
void set_allocator_options(const std::string& options) {
  cuda_services().set_allocator_options(options);
}
Tensor allocator_backend() { return text_tensor(cuda_services().allocator_backend()); }
void use_allocator(const Dims& path, const std::string& allocate, const std::string& release) {
  cuda_services().use_allocator(path_of(path), allocate, release);
}
void empty_cache() {
  if (opened_cuda_runtime) opened_cuda_runtime->empty_cache();
}

// ---- private pools

int64_t pool_create(const Dims& path, const std::string& allocate, const std::string& release) {
  return cuda_services().create_pool(path_of(path), allocate, release);
}
void pool_destroy(int64_t pool) { cuda_services().destroy_pool(pool); }
void pool_begin(int64_t pool, int64_t device) { cuda_services().begin_pool(pool, checked(device)); }
void pool_end(int64_t pool, int64_t device) { cuda_services().end_pool(pool, checked(device)); }

void record_stream(const Tensor& x, int64_t stream) {
  CHECK(x.device().is_cuda(), Device, "recordStream: expected a tensor on cuda, got one on ",
        x.device());
  cuda_services().record_stream(x.storage(), stream);
}

// ---- pinned memory

bool is_pinned(const Tensor& x) { return cresset::is_pinned(x.storage()); }

Tensor pin_memory(const Tensor& x) {
  CHECK(x.device().is_cpu(), Device, "pinMemory: expected a tensor on cpu, got one on ",
        x.device());
  if (is_pinned(x)) return x;
  const GradMode off(false);
  const Options o{x.dtype(), pinned_cpu};
  Tensor y = is_dense(x) ? empty_strided(x.sizes(), x.strides(), o) : empty(x.sizes(), o);
  copy_raw(x, y);
  return y;
}
}  // namespace

OP_TABLE(cuda_memory) = {
    op<memory_info>("_cuda_memory_info(int device) -> int[]", "private",
                    "Free and total bytes of a device."),
    op<memory_stats>("_cuda_memory_stats(int device) -> Tensor", "private",
                     "The allocator's counters, as JSON."),
    op<memory_snapshot>("_cuda_memory_snapshot() -> Tensor", "private",
                        "Segments and blocks of all devices, as JSON."),
    op<reset_memory_stats>("_cuda_reset_memory_stats(int device, bool peaks) -> ()", "private",
                           "Starts peaks, or sums, over."),
    op<set_memory_fraction>("_cuda_set_memory_fraction(int device, float fraction) -> ()",
                            "private", "Limits the memory of a device."),
    op<set_allocator_options>("_cuda_set_allocator_options(str options) -> ()", "private",
                              "Settings in the grammar of PYTORCH_ALLOC_CONF."),
    op<allocator_backend>("_cuda_allocator_backend() -> Tensor", "private",
                          "native, cudaMallocAsync or pluggable."),
    op<use_allocator>("_cuda_use_allocator(int[] path, str allocate, str release) -> ()", "private",
                      "Functions of a library take the allocator's place."),
    op<empty_cache>("_cuda_empty_cache() -> ()", "private",
                    "Gives cached memory back to the driver."),
    op<pool_create>("_cuda_pool_create(int[] path, str allocate, str release) -> int", "private",
                    "A private pool."),
    op<pool_destroy>("_cuda_pool_destroy(int pool) -> ()", "private", "Drops a private pool."),
    op<pool_begin>("_cuda_pool_begin(int pool, int device) -> ()", "private",
                   "Requests of this thread go to a pool."),
    op<pool_end>("_cuda_pool_end(int pool, int device) -> ()", "private",
                 "Requests no longer go to the pool."),
    op<record_stream>("_cuda_record_stream(Tensor self, int stream) -> ()", "private",
                      "The tensor's memory is also used by a stream."),
    op<pin_memory>("pin_memory(Tensor self) -> Tensor", "method",
                   "A copy in memory that GPUs can read by themselves; itself when it is there."),
    op<is_pinned>("is_pinned(Tensor self) -> bool", "method",
                  "Whether the tensor lies in pinned memory."),
};
OP_TABLE_END(cuda_memory);

}  // namespace cresset::ops
