// Seeds and states of random generators, which host languages know by number.
#include <mutex>
#include <unordered_map>

#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/random.h"

namespace cresset {
namespace {

// One of the two is set.
struct AnyGenerator {
  std::shared_ptr<Generator> cpu;
  std::shared_ptr<PhiloxGenerator> cuda;
};

struct Generators {
  std::mutex mutex;
  std::unordered_map<int64_t, AnyGenerator> by_id;
  int64_t next = 1;
};

// Shared by all threads, and never destroyed: workers may still draw at exit.
Generators& generators() {
  static auto* all = new Generators;
  return *all;
}

// The generator of a number, wherever it draws.
AnyGenerator any_generator(int64_t id) {
  if (id == 0) return {{std::shared_ptr<Generator>(), &default_generator()}, nullptr};
  if (id < 0) {
    CHECK(id >= -max_cuda_devices, Value, "generator: no CUDA device ", -1 - id);
    return {nullptr,
            {std::shared_ptr<PhiloxGenerator>(), &default_philox(static_cast<int>(-1 - id))}};
  }
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  auto found = all.by_id.find(id);
  CHECK(found != all.by_id.end(), Value, "generator: the generator has been disposed");
  return found->second;
}

}  // namespace

std::shared_ptr<Generator> generator_of(GeneratorRef ref) {
  AnyGenerator g = any_generator(ref.id);
  CHECK(g.cpu, Device, "generator: expected a generator of cpu, got one of ", g.cuda->device);
  return g.cpu;
}

std::shared_ptr<PhiloxGenerator> philox_of(GeneratorRef ref, Device device) {
  if (ref.id == 0) return {std::shared_ptr<PhiloxGenerator>(), &default_philox(device.index)};
  AnyGenerator g = any_generator(ref.id);
  CHECK(g.cuda, Device, "generator: expected a generator of ", device, ", got one of cpu");
  CHECK(g.cuda->device == device, Device, "generator: expected a generator of ", device,
        ", got one of ", g.cuda->device);
  return g.cuda;
}

template <> const RandomKernels& cpu_kernels<RandomKernels>() {
  static constexpr RandomKernels none = {};
  return none;
}

namespace ops {
namespace {

uint64_t seed_of(const Scalar& seed) {
  CHECK(seed.kind() == Scalar::Kind::Int, Value, "manualSeed: expected an integer, got ", seed);
  return static_cast<uint64_t>(seed.to_int());
}

int64_t create(const Scalar& seed, Device device) {
  AnyGenerator made;
  if (device.is_cuda())
    made.cuda = std::make_shared<PhiloxGenerator>(resolve_device(device), seed_of(seed));
  else
    made.cpu = std::make_shared<Generator>(seed_of(seed));
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  all.by_id.emplace(all.next, std::move(made));
  return all.next++;
}

void dispose(int64_t id) {
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  all.by_id.erase(id);
}

// As in PyTorch, the default generator's seed is that of all devices.
void manual_seed(int64_t id, const Scalar& seed) {
  const uint64_t bits = seed_of(seed);
  AnyGenerator g = any_generator(id);
  if (g.cuda) return g.cuda->manual_seed(bits);
  g.cpu->manual_seed(bits);
  if (id == 0) seed_all_philox(bits);
}

int64_t seed(int64_t id) {
  AnyGenerator g = any_generator(id);
  if (g.cpu) {
    const uint64_t bits = g.cpu->seed();
    if (id == 0) seed_all_philox(bits);
    return static_cast<int64_t>(bits);
  }
  const uint64_t bits = Generator().seed();
  g.cuda->manual_seed(bits);
  return static_cast<int64_t>(bits);
}

Scalar initial_seed(int64_t id) {
  AnyGenerator g = any_generator(id);
  return Scalar(static_cast<int64_t>(g.cuda ? g.cuda->seed : g.cpu->initial_seed()));
}

Tensor state_tensor(std::span<const uint8_t> bytes) {
  Tensor state = empty(Dims{static_cast<int64_t>(bytes.size())}, {DType::UInt8, {}});
  std::copy(bytes.begin(), bytes.end(), state.data<uint8_t>());
  return state;
}

Tensor get_state(int64_t id) {
  AnyGenerator g = any_generator(id);
  return g.cuda ? state_tensor(g.cuda->get_state()) : state_tensor(g.cpu->get_state());
}

void set_state(int64_t id, const Tensor& state) {
  CHECK(state.dtype() == DType::UInt8 && state.device().is_cpu(), DType,
        "setRngState: expected a uint8 tensor on the CPU, got ", state.dtype(), " on ",
        state.device());
  Tensor held = contiguous(state);
  const std::span<const uint8_t> bytes{held.data<uint8_t>(), static_cast<size_t>(held.numel())};
  AnyGenerator g = any_generator(id);
  if (g.cuda)
    g.cuda->set_state(bytes);
  else
    g.cpu->set_state(bytes);
}

}  // namespace

OP_TABLE(random_generators) = {
    op<create>("_generator_create(Scalar seed, Device device) -> int", "private",
               "A new generator's number."),
    op<dispose>("_generator_dispose(int id) -> ()", "private", "Frees a generator."),
    op<manual_seed>("_generator_manual_seed(int id, Scalar seed) -> ()", "private",
                    "Starts a generator over."),
    op<seed>("_generator_seed(int id) -> int", "private", "Seeds from the system's entropy."),
    op<initial_seed>("_generator_initial_seed(int id) -> Scalar", "private",
                     "The seed a generator started from."),
    op<get_state>("_generator_get_state(int id) -> Tensor", "private", "The state as bytes."),
    op<set_state>("_generator_set_state(int id, Tensor state) -> ()", "private",
                  "Restores a state."),
};
OP_TABLE_END(random_generators);

}  // namespace ops
}  // namespace cresset
