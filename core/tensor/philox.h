// The random generators of CUDA devices: a seed and a place in its stream of numbers.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/base/api.h"
#include "core/tensor/device_runtime.h"

namespace cresset {

/// Philox4x32-10 (Salmon et al. 2011) is computed on the GPU; the host keeps seed and offset. A
/// launch takes `offset` and moves it on by what its threads may draw.
struct PhiloxGenerator {
  explicit PhiloxGenerator(Device on = {DeviceType::CUDA, 0}, uint64_t from = default_seed)
      : device(on), seed(from) {}

  static constexpr uint64_t default_seed = 67280421310721;
  /// Seed and offset, little-endian: the bytes of torch.cuda.get_rng_state().
  static constexpr size_t state_bytes = 16;

  Device device;
  uint64_t seed;
  uint64_t offset = 0;
  std::mutex mutex;

  void manual_seed(uint64_t from) {
    std::lock_guard lock(mutex);
    seed = from;
    offset = 0;
  }
  std::array<uint8_t, state_bytes> get_state();
  /// Throws Value when the bytes are not such a state.
  void set_state(std::span<const uint8_t> bytes);
};

/// The generator behind torch.cuda.manual_seed; index in [0, max_cuda_devices).
PhiloxGenerator& default_philox(int device);
/// Seeds the default generators of all devices, also before CUDA is in use.
void seed_all_philox(uint64_t seed);

}  // namespace cresset
