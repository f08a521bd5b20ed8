// Handles: ids that are never used twice, and the scopes that free them.
#include "core/dispatch/handles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/abi.h"
#include "core/tensor/allocator.h"

using namespace cresset;

namespace {

Tensor number() {
  int64_t sizes[] = {1};
  return empty(sizes, {});
}

TEST(Handles, StaleIdsNeverMeetAnotherTensor) {
  HandleTable table;
  std::set<int64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    int64_t id = table.add(number());
    EXPECT_TRUE(seen.insert(id).second);
    table.remove(id);
    table.remove(id);
    ASSERT_EQ(table.find(id), nullptr);
  }
  EXPECT_EQ(table.live(), 0u);
  for (int64_t id : seen) ASSERT_EQ(table.find(id), nullptr);
}

TEST(Handles, IdsAreExactAsDoubles) {
  int64_t largest = int64_t{HandleTable::last_generation} << HandleTable::slot_bits |
                    (HandleTable::max_slots - 1);
  EXPECT_EQ(static_cast<int64_t>(static_cast<double>(largest)), largest);
  HandleTable table;
  EXPECT_EQ(table.find(largest), nullptr);
  EXPECT_EQ(table.find(-1), nullptr);
}

TEST(Scopes, FreeWhatWasMadeInThem) {
  HandleTable table;
  int64_t before = table.add(number());
  ASSERT_EQ(table.open_scope(), 1u);
  int64_t outer = table.add(number());
  ASSERT_EQ(table.open_scope(), 2u);
  int64_t inner = table.add(number()), returned = table.add(number()), kept = table.add(number());
  EXPECT_EQ(table.scope_of(before), 0);
  EXPECT_EQ(table.scope_of(outer), 1);
  EXPECT_EQ(table.scope_of(inner), 2);
  EXPECT_EQ(table.scope_ids(1).size(), 4u);
  EXPECT_TRUE(table.lift(returned, 2));
  EXPECT_FALSE(table.lift(outer, 2));
  EXPECT_FALSE(table.lift(before, 2));
  EXPECT_TRUE(table.lift(kept, 1));
  table.close_scope(2);
  EXPECT_EQ(table.scope_of(inner), -1);
  EXPECT_EQ(table.scope_of(returned), 1);
  EXPECT_EQ(table.scope_of(kept), 0);
  table.close_scope(1);
  EXPECT_EQ(table.scope_of(returned), -1);
  EXPECT_EQ(table.live(), 2u);
}

TEST(Scopes, CloseThoseInside) {
  HandleTable table;
  for (int i = 0; i < 5; ++i) {
    table.open_scope();
    table.add(number());
  }
  table.close_scope(2);
  EXPECT_EQ(table.depth(), 1u);
  EXPECT_EQ(table.live(), 1u);
  table.close_scope(1);
  table.close_scope(1);
  EXPECT_EQ(table.live(), 0u);
}

// The lists against a plain model of them.
TEST(Scopes, AgreeWithAModel) {
  std::mt19937 random(0);
  HandleTable table;
  std::vector<std::pair<int64_t, uint32_t>> model;
  for (int step = 0; step < 20'000; ++step) {
    uint32_t what = random() % 16, depth = table.depth();
    size_t at = model.empty() ? 0 : random() % model.size();
    if (what < 7) {
      model.push_back({table.add(number()), depth});
    } else if (what < 10 && !model.empty()) {
      table.remove(model[at].first);
      model.erase(model.begin() + static_cast<int64_t>(at));
    } else if (what < 12 && !model.empty()) {
      uint32_t from = 1 + random() % 4;
      bool lifted = model[at].second >= from;
      ASSERT_EQ(table.lift(model[at].first, from), lifted);
      if (lifted) model[at].second = from - 1;
    } else if (what < 14 && depth < 4) {
      table.open_scope();
    } else if (depth > 0) {
      uint32_t close = 1 + random() % depth;
      table.close_scope(close);
      std::erase_if(model, [&](auto& m) { return m.second >= close; });
    }
    ASSERT_EQ(table.live(), model.size());
    for (auto [id, depth_of] : model) ASSERT_EQ(table.scope_of(id), static_cast<int32_t>(depth_of));
  }
}

TEST(Scopes, AreCountedOutOfTheSweep) {
  cresset_env* env = cresset_env_new();
  cpu_mark_sweep();
  int64_t sizes[] = {1 << 20};
  uint32_t depth = cresset_scope_begin(env);
  {
    Tensor t = empty(sizes, {});
    EXPECT_GE(cpu_allocated_since_sweep(), 4 << 20);
  }
  double slots[] = {0};
  cresset_scope_end(env, depth, slots);
  EXPECT_EQ(cpu_allocated_since_sweep(), 0);
  depth = cresset_scope_begin(env);
  Tensor stays = empty(sizes, {});
  cresset_scope_end(env, depth, slots);
  EXPECT_GE(cpu_allocated_since_sweep(), 4 << 20);
  cresset_env_delete(env);
}

}  // namespace
