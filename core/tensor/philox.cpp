// The default generators of CUDA devices and the bytes of their states.
#include "core/tensor/philox.h"

#include <cstring>

#include "core/base/error.h"

namespace cresset {
namespace {

// Never destroyed: workers may still draw at exit.
std::array<PhiloxGenerator, max_cuda_devices>& defaults() {
  static auto* all = [] {
    auto* made = new std::array<PhiloxGenerator, max_cuda_devices>;
    for (size_t i = 0; i < made->size(); ++i) (*made)[i].device.index = static_cast<int8_t>(i);
    return made;
  }();
  return *all;
}

}  // namespace

std::array<uint8_t, PhiloxGenerator::state_bytes> PhiloxGenerator::get_state() {
  std::lock_guard lock(mutex);
  std::array<uint8_t, state_bytes> bytes;
  std::memcpy(bytes.data(), &seed, 8);
  std::memcpy(bytes.data() + 8, &offset, 8);
  return bytes;
}

void PhiloxGenerator::set_state(std::span<const uint8_t> bytes) {
  CHECK(bytes.size() == state_bytes, Value, "setRngState: expected ", state_bytes,
        " bytes for a CUDA generator, got ", bytes.size());
  uint64_t to = 0;
  std::memcpy(&to, bytes.data() + 8, 8);
  CHECK(to % 4 == 0, Value, "setRngState: expected an offset that is a multiple of 4, got ", to);
  std::lock_guard lock(mutex);
  std::memcpy(&seed, bytes.data(), 8);
  offset = to;
}

PhiloxGenerator& default_philox(int device) {
  ASSERT(device >= 0 && device < max_cuda_devices);
  return defaults()[static_cast<size_t>(device)];
}

void seed_all_philox(uint64_t seed) {
  for (PhiloxGenerator& g : defaults()) g.manual_seed(seed);
}

}  // namespace cresset
