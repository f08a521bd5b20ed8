// Element types and their promotion, the 16-bit floats, and error messages.
#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "core/base/error.h"

namespace cresset {
namespace {

constexpr DType dtype_at(int i) { return static_cast<DType>(i); }

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < dtype_count; ++i) EXPECT_EQ(dtype_from_name(name(dtype_at(i))), dtype_at(i));
  EXPECT_EQ(dtype_from_name("half"), DType::Float16);
  EXPECT_EQ(dtype_from_name("long"), DType::Int64);
  EXPECT_EQ(dtype_from_name("float128"), std::nullopt);
  std::ostringstream stream;
  stream << DType::BFloat16;
  EXPECT_EQ(stream.str(), "bfloat16");
}

TEST(DType, VisitGivesTheStorageType) {
  for (int i = 0; i < dtype_count; ++i) {
    visit_dtype(dtype_at(i), [&]<class T>() {
      EXPECT_EQ(dtype_of<T>, dtype_at(i));
      EXPECT_EQ(sizeof(T), itemsize(dtype_at(i)));
    });
  }
}

TEST(DType, Categories) {
  EXPECT_TRUE(is_integral(DType::Bool, true));
  EXPECT_FALSE(is_integral(DType::Bool, false));
  EXPECT_FALSE(is_signed(DType::UInt8));
  EXPECT_FALSE(is_signed(DType::Bool));
  EXPECT_TRUE(is_signed(DType::Int8));
  EXPECT_TRUE(is_floating(DType::BFloat16));
  EXPECT_FALSE(is_floating(DType::Complex64));
  EXPECT_EQ(to_real(DType::Complex128), DType::Float64);
  EXPECT_EQ(to_complex(DType::Float16), DType::Complex64);
}

// torch.promote_types of all pairs: row and column are the order of DType, a digit is the result.
TEST(DType, PromotionTableIsPyTorchs) {
  const char* table[dtype_count] = {"0123456789AB", "1133456789AB", "2323456789AB", "3333456789AB",
                                    "4444456789AB", "5555556789AB", "6666666889AB", "7777778789AB",
                                    "8888888889AB", "9999999999BB", "AAAAAAAAABAB", "BBBBBBBBBBBB"};
  for (int a = 0; a < dtype_count; ++a) {
    for (int b = 0; b < dtype_count; ++b) {
      const char digit = table[a][b];
      const DType expected = dtype_at(digit <= '9' ? digit - '0' : digit - 'A' + 10);
      EXPECT_EQ(promote_types(dtype_at(a), dtype_at(b)), expected)
          << dtype_at(a) << " with " << dtype_at(b);
    }
  }
}

DType mixed(DType dimensioned, DType zero_dim) {
  PromotionState state;
  state.add_tensor(zero_dim, true);
  state.add_tensor(dimensioned, false);
  return state.result(DType::Float32);
}

DType mixed(DType tensor, ScalarKind number, bool zero_dim = false) {
  PromotionState state;
  state.add_tensor(tensor, zero_dim);
  state.add_scalar(number);
  return state.result(DType::Float32);
}

TEST(DType, DimensionedTensorsDecideOverZeroDimensional) {
  EXPECT_EQ(mixed(DType::Float16, DType::Float64), DType::Float16);
  EXPECT_EQ(mixed(DType::UInt8, DType::Int64), DType::UInt8);
  EXPECT_EQ(mixed(DType::Int16, DType::Float64), DType::Float64);
  EXPECT_EQ(mixed(DType::Float64, DType::Complex64), DType::Complex128);
  EXPECT_EQ(mixed(DType::Bool, DType::UInt8), DType::UInt8);
}

TEST(DType, NumbersAreWeakest) {
  EXPECT_EQ(mixed(DType::Int16, ScalarKind::Float), DType::Float32);
  EXPECT_EQ(mixed(DType::Bool, ScalarKind::Int), DType::Int64);
  EXPECT_EQ(mixed(DType::UInt8, ScalarKind::Int), DType::UInt8);
  EXPECT_EQ(mixed(DType::Float16, ScalarKind::Float), DType::Float16);
  EXPECT_EQ(mixed(DType::Float64, ScalarKind::Complex), DType::Complex128);
  EXPECT_EQ(mixed(DType::Int64, ScalarKind::Complex), DType::Complex64);
  EXPECT_EQ(mixed(DType::Int8, ScalarKind::Bool, true), DType::Int8);
  EXPECT_EQ(mixed(DType::Float16, ScalarKind::Int, true), DType::Float16);
}

TEST(DType, DefaultDtypeGivesTheTypeOfFloatNumbers) {
  PromotionState state;
  EXPECT_EQ(state.result(DType::Float64), DType::Float64);
  state.add_tensor(DType::Int32, false);
  state.add_scalar(ScalarKind::Float);
  EXPECT_EQ(state.result(DType::Float64), DType::Float64);
  EXPECT_EQ(state.result(DType::BFloat16), DType::BFloat16);
}

TEST(Half, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = Half::from_bits(static_cast<uint16_t>(bits));
    const auto brain = BFloat16::from_bits(static_cast<uint16_t>(bits));
    if (std::isnan(float(half))) {
      EXPECT_TRUE(std::isnan(float(Half(float(half)))));
    } else {
      EXPECT_EQ(Half(float(half)).bits, bits);
    }
    if (std::isnan(float(brain))) {
      EXPECT_TRUE(std::isnan(float(BFloat16(float(brain)))));
    } else {
      EXPECT_EQ(BFloat16(float(brain)).bits, bits);
    }
  }
}

/// Between neighbours a < b: the midpoint goes to the even one, what is beside it to the nearer.
template <class T> void check_rounding(uint16_t low) {
  const T a = T::from_bits(low);
  const T b = T::from_bits(static_cast<uint16_t>(low + 1));
  const float middle = 0.5f * float(a) + 0.5f * float(b);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(T(middle).bits, low % 2 == 0 ? a.bits : b.bits) << low;
  EXPECT_EQ(T(std::nextafter(middle, -infinity)).bits, a.bits) << low;
  EXPECT_EQ(T(std::nextafter(middle, infinity)).bits, b.bits) << low;
}

TEST(Half, RoundsToNearestEven) {
  for (uint16_t low = 0; low < 0x7bff; ++low) check_rounding<Half>(low);
  for (uint16_t low = 0x80; low < 0x7f7f; ++low) check_rounding<BFloat16>(low);
}

TEST(Half, OverflowAndUnderflow) {
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(float(std::numeric_limits<Half>::epsilon()), 0x1p-10f);
  EXPECT_EQ(float(std::numeric_limits<BFloat16>::epsilon()), 0x1p-7f);
}

TEST(Error, MessageIsMadeOfItsParts) {
  const std::vector<int64_t> sizes{3, 4};
  const int64_t rank = 2, dim = 5;
  try {
    CHECK(dim < rank, Index, "softmax: expected dim in [", -rank, ", ", rank - 1, "] for shape ",
          sizes, ", got ", dim);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Index);
    EXPECT_STREQ(error.what(), "softmax: expected dim in [-2, 1] for shape [3, 4], got 5");
    EXPECT_STREQ(name(error.kind), "IndexError");
  }
}

TEST(Error, PartsOfAllTypes) {
  try {
    fail(ErrorKind::Value, DType::Float16, ' ', true, ' ', 0.1, ' ', uint8_t{7}, ' ',
         std::span<const int64_t>{}, ' ', std::string("text"));
  } catch (const Error& error) {
    EXPECT_EQ(error.message, "float16 true 0.1 7 [] text");
  }
}

TEST(Error, AssertIsAnInternalError) {
  try {
    ASSERT(1 > 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Internal);
    EXPECT_EQ(error.message.find("internal: expected 1 > 2 at "), 0u);
  }
}

}  // namespace
}  // namespace cresset
