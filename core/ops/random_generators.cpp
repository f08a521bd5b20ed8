// Seeds and states of random generators, which host languages know by number.
#include <mutex>
#include <unordered_map>

#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/random.h"

namespace cresset {
namespace {

struct Generators {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<Generator>> by_id;
  int64_t next = 1;
};

// Shared by all threads, and never destroyed: workers may still draw at exit.
Generators& generators() {
  static auto* all = new Generators;
  return *all;
}

}  // namespace

std::shared_ptr<Generator> generator_of(GeneratorRef ref) {
  if (ref.id == 0) return {std::shared_ptr<Generator>(), &default_generator()};
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  auto found = all.by_id.find(ref.id);
  CHECK(found != all.by_id.end(), Value, "generator: the generator has been disposed");
  return found->second;
}

namespace ops {
namespace {

uint64_t seed_of(const Scalar& seed) {
  CHECK(seed.kind() == Scalar::Kind::Int, Value, "manualSeed: expected an integer, got ", seed);
  return static_cast<uint64_t>(seed.to_int());
}

int64_t create(const Scalar& seed) {
  auto made = std::make_shared<Generator>(seed_of(seed));
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

void manual_seed(int64_t id, const Scalar& seed) { generator_of({id})->manual_seed(seed_of(seed)); }
int64_t seed(int64_t id) { return static_cast<int64_t>(generator_of({id})->seed()); }
Scalar initial_seed(int64_t id) {
  return Scalar(static_cast<int64_t>(generator_of({id})->initial_seed()));
}

Tensor get_state(int64_t id) {
  std::vector<uint8_t> bytes = generator_of({id})->get_state();
  Tensor state = empty(Dims{static_cast<int64_t>(bytes.size())}, {DType::UInt8, {}});
  std::copy(bytes.begin(), bytes.end(), state.data<uint8_t>());
  return state;
}

void set_state(int64_t id, const Tensor& state) {
  CHECK(state.dtype() == DType::UInt8 && state.device().is_cpu(), DType,
        "setRngState: expected a uint8 tensor on the CPU, got ", state.dtype(), " on ",
        state.device());
  Tensor bytes = contiguous(state);
  generator_of({id})->set_state({bytes.data<uint8_t>(), static_cast<size_t>(bytes.numel())});
}

}  // namespace

OP_TABLE(random_generators) = {
    op<create>("_generator_create(Scalar seed) -> int", "private", "A new generator's number."),
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
