// Strided copies against a plain loop: every element size, transposed, flipped and broadcast.
#include "core/ops/copy_kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace cresset {
namespace {

struct Case {
  Dims sizes, to, from;
  int64_t from_start = 0;
};

// Copies bytes of `size` per element and compares with one element after another.
void check(const Case& c, int64_t size) {
  int64_t to_reach = 1, from_low = c.from_start, from_high = c.from_start, n = 1;
  for (size_t d = 0; d < c.sizes.size(); ++d) {
    to_reach += (c.sizes[d] - 1) * c.to[d];
    int64_t reach = (c.sizes[d] - 1) * c.from[d];
    (reach < 0 ? from_low : from_high) += reach;
    n *= c.sizes[d];
  }
  ASSERT_GE(from_low, 0);
  std::vector<char> from(static_cast<size_t>((from_high + 1) * size));
  std::iota(from.begin(), from.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(from[i] ^ (i >> 8));
  std::vector<char> got(static_cast<size_t>(to_reach * size) + 1, 0x55), want = got;
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, to_at = 0, from_at = c.from_start;
    for (size_t d = c.sizes.size(); d-- > 0;) {
      to_at += rest % c.sizes[d] * c.to[d];
      from_at += rest % c.sizes[d] * c.from[d];
      rest /= c.sizes[d];
    }
    for (int64_t b = 0; b < size; ++b)
      want[static_cast<size_t>(to_at * size + b)] = from[static_cast<size_t>(from_at * size + b)];
  }
  cpu_kernels<CopyKernels>().strided(
      {got.data(), from.data() + c.from_start * size, c.sizes, c.to, c.from, size});
  EXPECT_EQ(got, want) << "size " << size << ", rank " << c.sizes.size();
}

TEST(StridedCopy, EqualsAPlainLoop) {
  const std::vector<Case> cases = {
      {{}, {}, {}},
      {{7}, {1}, {1}},
      {{5, 3}, {3, 1}, {3, 1}},
      {{37, 53}, {53, 1}, {1, 37}},               // transposed, ragged tiles
      {{3, 33, 18}, {594, 18, 1}, {594, 1, 33}},  // a batch of transposed planes
      {{18, 3, 33}, {99, 33, 1}, {1, 594, 18}},   // rows and columns not neighbours
      {{4, 6}, {6, 1}, {0, 1}},
      {{4, 6}, {6, 1}, {1, 0}},
      {{4, 6}, {6, 1}, {-6, -1}, 23},
      {{4, 6}, {12, 2}, {6, 1}},
      {{2, 1, 3}, {3, 99, 1}, {1, 77, 2}},
      {{300, 400}, {400, 1}, {1, 300}},
  };
  for (const Case& c : cases)
    for (int64_t size : {1, 2, 4, 8, 16}) check(c, size);
}

TEST(StridedCopy, TouchesNothingForEmptySpaces) {
  char to = 1, from = 2;
  cpu_kernels<CopyKernels>().strided({&to, &from, Dims{3, 0}, Dims{1, 1}, Dims{1, 1}, 1});
  EXPECT_EQ(to, 1);
}

}  // namespace
}  // namespace cresset
