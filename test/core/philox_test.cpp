// Seeds and states of the CUDA generators, which live on the host.
#include "core/tensor/philox.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace cresset {
namespace {

TEST(Philox, StatesAreSeedAndOffsetInPyTorchsBytes) {
  PhiloxGenerator g;
  g.manual_seed(0x0102030405060708);
  g.offset = 12;
  const auto state = g.get_state();
  EXPECT_EQ(state[0], 8);
  EXPECT_EQ(state[7], 1);
  EXPECT_EQ(state[8], 12);
  PhiloxGenerator other;
  other.set_state(state);
  EXPECT_EQ(other.seed, g.seed);
  EXPECT_EQ(other.offset, 12u);
}

TEST(Philox, BadStatesAreRefusedAndChangeNothing) {
  PhiloxGenerator g;
  auto state = g.get_state();
  state[8] = 3;
  EXPECT_THROW(g.set_state(state), Error);
  EXPECT_THROW(g.set_state(std::span(state).first(15)), Error);
  EXPECT_EQ(g.seed, PhiloxGenerator::default_seed);
  EXPECT_EQ(g.offset, 0u);
}

TEST(Philox, OneSeedForAllDevices) {
  default_philox(3).offset = 8;
  seed_all_philox(42);
  EXPECT_EQ(default_philox(0).seed, 42u);
  EXPECT_EQ(default_philox(3).seed, 42u);
  EXPECT_EQ(default_philox(3).offset, 0u);
  EXPECT_EQ(default_philox(3).device.index, 3);
}

}  // namespace
}  // namespace cresset
