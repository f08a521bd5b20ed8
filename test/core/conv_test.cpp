// Convolutions and poolings against direct definitions: strides, padding, dilation, groups, ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "core/cpu/conv_raw.h"
#include "core/cpu/parallel.h"
#include "core/cpu/pool_raw.h"

namespace cresset {
namespace {

int64_t volume(const ConvNdShape::Extent& e) { return e[0] * e[1] * e[2]; }

/// Small whole numbers, so that sums are exact in every type.
template <class T> std::vector<T> whole_numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(count));
  auto part = [&] { return static_cast<int>(random() % 7) - 3; };
  for (T& x : values) {
    if constexpr (std::is_arithmetic_v<T>) {
      x = static_cast<T>(part());
    } else {
      typename T::value_type re(part()), im(part());
      x = T(re, im);
    }
  }
  return values;
}

/// Calls visit(x index, w index, y index) for every product of the convolution's definition.
template <class Visit> void for_each_product(const ConvNdShape& s, Visit&& visit) {
  const int64_t ci = s.c_in / s.groups, co = s.c_out / s.groups;
  const int64_t taps = volume(s.kernel), in = volume(s.in), out = volume(s.out);
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t o = 0; o < s.c_out; ++o) {
      for (int64_t c = 0; c < ci; ++c) {
        for (int64_t p = 0; p < out; ++p) {
          for (int64_t t = 0; t < taps; ++t) {
            const int64_t at[3] = {p / (s.out[1] * s.out[2]), p / s.out[2] % s.out[1],
                                   p % s.out[2]};
            const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1],
                                    t % s.kernel[2]};
            int64_t index = 0;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t i = at[d] * s.stride[d] - s.pad_before[d] + tap[d] * s.dilation[d];
              inside = inside && i >= 0 && i < s.in[d];
              index = index * s.in[d] + i;
            }
            if (!inside) continue;
            visit((n * s.c_in + o / co * ci + c) * in + index, (o * ci + c) * taps + t,
                  (n * s.c_out + o) * out + p);
          }
        }
      }
    }
  }
}

/// A shape from sizes, with the output size that PyTorch computes.
ConvNdShape shape_of(int64_t n, int64_t c_in, int64_t c_out, int64_t groups, ConvNdShape::Extent in,
                     ConvNdShape::Extent kernel, ConvNdShape::Extent stride = {1, 1, 1},
                     ConvNdShape::Extent before = {0, 0, 0}, ConvNdShape::Extent after = {0, 0, 0},
                     ConvNdShape::Extent dilation = {1, 1, 1}) {
  ConvNdShape s{n, c_in, c_out, groups, in, kernel, {}, stride, before, after, dilation};
  for (size_t d = 0; d < 3; ++d) {
    s.out[d] = (in[d] + before[d] + after[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  return s;
}

template <class T> struct Kernels {
  void (*forward)(const ConvNdShape&, const T*, const T*, const T*, T*);
  void (*backward_input)(const ConvNdShape&, const T*, const T*, T*);
  void (*backward_weight)(const ConvNdShape&, const T*, const T*, T*, T*);
};

template <class T> void check(const ConvNdShape& s, const Kernels<T>& kernels, bool with_bias) {
  const int64_t nx = s.n * s.c_in * volume(s.in), ny = s.n * s.c_out * volume(s.out);
  const int64_t nw = s.c_out * (s.c_in / s.groups) * volume(s.kernel);
  const auto x = whole_numbers<T>(nx, 1), w = whole_numbers<T>(nw, 2);
  const auto b = whole_numbers<T>(s.c_out, 3), gy = whole_numbers<T>(ny, 4);
  // One element more than needed catches writes past the end.
  const T sentinel(77);
  std::vector<T> y(ny + 1, sentinel), gx(nx + 1, sentinel), gw(nw + 1, sentinel);
  std::vector<T> gb(s.c_out + 1, sentinel);
  kernels.forward(s, x.data(), w.data(), with_bias ? b.data() : nullptr, y.data());
  kernels.backward_input(s, gy.data(), w.data(), gx.data());
  kernels.backward_weight(s, x.data(), gy.data(), gw.data(), with_bias ? gb.data() : nullptr);

  std::vector<T> want_y(ny + 1, T(0)), want_gx(nx + 1, T(0)), want_gw(nw + 1, T(0));
  std::vector<T> want_gb(s.c_out + 1, with_bias ? T(0) : sentinel);
  const int64_t out = std::max<int64_t>(1, volume(s.out));
  for (int64_t i = 0; i < ny; ++i) {
    const int64_t channel = i / out % s.c_out;
    if (with_bias) want_y[i] = b[channel], want_gb[channel] += gy[i];
  }
  for_each_product(s, [&](int64_t ix, int64_t iw, int64_t iy) {
    want_y[iy] += x[ix] * w[iw];
    want_gx[ix] += gy[iy] * w[iw];
    want_gw[iw] += gy[iy] * x[ix];
  });
  want_y[ny] = want_gx[nx] = want_gw[nw] = want_gb[s.c_out] = sentinel;
  EXPECT_EQ(y, want_y);
  EXPECT_EQ(gx, want_gx);
  EXPECT_EQ(gw, want_gw);
  EXPECT_EQ(gb, want_gb);
}

std::vector<ConvNdShape> shapes() {
  return {
      shape_of(2, 3, 4, 1, {1, 7, 8}, {1, 3, 3}),
      shape_of(2, 3, 4, 1, {1, 7, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}),
      shape_of(3, 1, 8, 1, {1, 28, 28}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}),
      shape_of(2, 16, 32, 1, {1, 9, 9}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {0, 1, 1}),
      shape_of(2, 4, 6, 2, {1, 9, 7}, {1, 3, 2}, {1, 2, 3}, {0, 2, 0}, {0, 1, 3}, {1, 2, 2}),
      shape_of(2, 6, 6, 6, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}),
      shape_of(2, 5, 3, 1, {1, 6, 6}, {1, 1, 1}),
      shape_of(1, 5, 3, 1, {1, 6, 6}, {1, 1, 1}, {1, 2, 2}),
      shape_of(1, 2, 2, 1, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {0, 4, 4}, {0, 4, 4}),
      shape_of(1, 2, 3, 1, {1, 5, 9}, {1, 2, 2}, {1, 4, 4}),
      shape_of(2, 3, 4, 1, {1, 1, 30}, {1, 1, 5}, {1, 1, 2}, {0, 0, 3}, {0, 0, 3}),
      shape_of(1, 2, 3, 1, {1, 1, 700}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}),
      shape_of(2, 2, 4, 2, {4, 5, 6}, {2, 3, 2}, {2, 1, 1}, {1, 1, 0}, {0, 1, 1}, {1, 1, 2}),
      shape_of(0, 3, 4, 1, {1, 5, 5}, {1, 3, 3}),
      shape_of(2, 0, 4, 1, {1, 5, 5}, {1, 3, 3}),
      shape_of(2, 3, 4, 1, {1, 2, 5}, {1, 3, 3}),
  };
}

template <class T> void check_shapes(const Kernels<T>& kernels) {
  const int threads = num_threads();
  for (int count : {1, 2, 5}) {
    set_num_threads(count);
    for (const ConvNdShape& s : shapes()) {
      SCOPED_TRACE(testing::Message() << "in " << s.c_in << "x" << s.in[0] << "x" << s.in[1] << "x"
                                      << s.in[2] << " groups " << s.groups << " n " << s.n);
      check(s, kernels, true);
      check(s, kernels, false);
    }
  }
  set_num_threads(threads);
}

template <class T> Kernels<T> chosen() {
  return {conv_forward<T>, conv_backward_input<T>, conv_backward_weight<T>};
}

TEST(Conv, Float) { check_shapes(chosen<float>()); }
TEST(Conv, Double) { check_shapes(chosen<double>()); }
TEST(Conv, Int64) { check_shapes(chosen<int64_t>()); }
TEST(Conv, ComplexFloat) { check_shapes(chosen<std::complex<float>>()); }
TEST(Conv, ComplexDouble) { check_shapes(chosen<std::complex<double>>()); }
TEST(Conv, OwnFloat) {
  check_shapes(Kernels<float>{conv_own_forward<float>, conv_own_backward_input<float>,
                              conv_own_backward_weight<float>});
}

TEST(Conv, ManyBlocks) {
  // Large enough that the own kernels cut one image into several blocks or bands.
  for (int64_t stride : {1, 2}) {
    const ConvNdShape s =
        shape_of(1, 40, 8, 1, {1, 40, 40}, {1, 3, 3}, {1, 1, stride}, {0, 1, 1}, {0, 1, 1});
    check(s, chosen<double>(), true);
    check(s,
          Kernels<float>{conv_own_forward<float>, conv_own_backward_input<float>,
                         conv_own_backward_weight<float>},
          true);
  }
}

/// Calls visit(x index in its plane) for the elements of window (i, j), in memory order.
template <class Visit>
void for_each_in_window(const PoolShape& s, int64_t i, int64_t j, Visit&& visit) {
  for (int64_t a = 0; a < s.kh; ++a) {
    for (int64_t b = 0; b < s.kw; ++b) {
      const int64_t r = i * s.stride_h - s.pad_h + a * s.dil_h;
      const int64_t c = j * s.stride_w - s.pad_w + b * s.dil_w;
      if (r >= 0 && r < s.h && c >= 0 && c < s.w) visit(r * s.w + c);
    }
  }
}

template <class T> void check_max_pool(const PoolShape& s, std::vector<T> x) {
  const int64_t out = s.oh * s.ow, in = s.h * s.w;
  const auto gy = whole_numbers<T>(s.planes * out, 9);
  std::vector<T> y(s.planes * out), gx(s.planes * in), want_gx(s.planes * in, T(0));
  std::vector<int64_t> indices(s.planes * out);
  max_pool2d_forward(s, x.data(), y.data(), indices.data());
  max_pool2d_backward(s, gy.data(), indices.data(), gx.data());
  for (int64_t q = 0; q < s.planes * out; ++q) {
    const T* plane = x.data() + q / out * in;
    int64_t best = -1;
    for_each_in_window(s, q % out / s.ow, q % s.ow, [&](int64_t at) {
      if (best < 0 || plane[at] > plane[best] || plane[at] != plane[at]) best = at;
    });
    ASSERT_EQ(indices[q], best) << "output " << q;
    ASSERT_TRUE(y[q] == plane[best] || (y[q] != y[q] && plane[best] != plane[best]));
    want_gx[q / out * in + best] += gy[q];
  }
  EXPECT_EQ(gx, want_gx);
}

template <class T> void check_avg_pool(const PoolShape& s, const AvgPoolDivisor& divisor) {
  const int64_t out = s.oh * s.ow, in = s.h * s.w;
  const auto x = whole_numbers<T>(s.planes * in, 8), gy = whole_numbers<T>(s.planes * out, 9);
  std::vector<T> y(s.planes * out), gx(s.planes * in), want_gx(s.planes * in, T(0));
  avg_pool2d_forward(s, divisor, x.data(), y.data());
  avg_pool2d_backward(s, divisor, gy.data(), gx.data());
  for (int64_t q = 0; q < s.planes * out; ++q) {
    const int64_t i = q % out / s.ow, j = q % s.ow;
    const int64_t top = i * s.stride_h - s.pad_h, left = j * s.stride_w - s.pad_w;
    T sum(0);
    int64_t count = 0;
    for_each_in_window(s, i, j, [&](int64_t at) { sum += x[q / out * in + at], ++count; });
    if (divisor.count_include_pad) {
      count = (std::min(top + s.kh, s.h + s.pad_h) - top) *
              (std::min(left + s.kw, s.w + s.pad_w) - left);
    }
    if (divisor.divisor_override != 0) count = divisor.divisor_override;
    ASSERT_EQ(y[q], sum / T(count)) << "output " << q;
    for_each_in_window(s, i, j,
                       [&](int64_t at) { want_gx[q / out * in + at] += gy[q] / T(count); });
  }
  for (size_t i = 0; i < gx.size(); ++i) ASSERT_NEAR(gx[i], want_gx[i], 1e-5);
}

const PoolShape kPoolShapes[] = {
    {6, 8, 8, 2, 2, 4, 4, 2, 2, 0, 0},  {6, 28, 28, 2, 2, 14, 14, 2, 2, 0, 0},
    {3, 9, 11, 3, 3, 5, 6, 2, 2, 1, 1}, {3, 9, 300, 3, 3, 9, 300, 1, 1, 1, 1},
    {2, 7, 6, 2, 2, 4, 4, 2, 2, 1, 1},  {2, 8, 9, 1, 1, 3, 3, 3, 3, 0, 0},
    {1, 1, 9, 1, 4, 1, 4, 1, 3, 0, 1},  {1, 1, 7, 1, 2, 1, 4, 1, 2, 0, 1},
    {2, 5, 5, 5, 5, 1, 1, 1, 1, 0, 0},  {2, 40, 1000, 4, 3, 13, 333, 3, 3, 0, 0},
    {0, 4, 4, 2, 2, 2, 2, 2, 2, 0, 0},
};

TEST(Pool, Max) {
  for (const PoolShape& s : kPoolShapes) {
    SCOPED_TRACE(testing::Message() << s.h << "x" << s.w << " k" << s.kh << "x" << s.kw);
    check_max_pool<float>(s, whole_numbers<float>(s.planes * s.h * s.w, 5));
    check_max_pool<double>(s, whole_numbers<double>(s.planes * s.h * s.w, 6));
    check_max_pool<int64_t>(s, whole_numbers<int64_t>(s.planes * s.h * s.w, 7));
  }
  const PoolShape dilated{2, 12, 13, 3, 2, 5, 12, 2, 1, 1, 1, 2, 3};
  check_max_pool<float>(dilated, whole_numbers<float>(2 * 12 * 13, 5));
}

TEST(Pool, MaxKeepsNanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const PoolShape& s : kPoolShapes) {
    auto x = whole_numbers<float>(s.planes * s.h * s.w, 5);
    for (size_t i = 0; i < x.size(); i += 7) x[i] = nan;
    for (size_t i = 3; i < x.size(); i += 5) x[i] = -inf;
    check_max_pool<float>(s, x);
    // Padding ties with -inf and must lose.
    std::fill(x.begin(), x.end(), -inf);
    check_max_pool<float>(s, x);
  }
}

TEST(Pool, Average) {
  for (const PoolShape& s : kPoolShapes) {
    SCOPED_TRACE(testing::Message() << s.h << "x" << s.w << " k" << s.kh << "x" << s.kw);
    check_avg_pool<float>(s, {});
    check_avg_pool<double>(s, {.count_include_pad = false});
    check_avg_pool<double>(s, {.divisor_override = 3});
    check_avg_pool<int64_t>(s, {});
  }
}

TEST(Pool, CeilWindowsCountNoMoreThanPadding) {
  const double x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  double y[4];
  avg_pool2d_forward<double>({1, 1, 8, 1, 3, 1, 3, 1, 3, 0, 0}, {}, x, y);
  EXPECT_EQ(std::vector<double>(y, y + 3), (std::vector<double>{2, 5, 7.5}));
  const PoolShape padded{1, 1, 9, 1, 4, 1, 4, 1, 3, 0, 1};
  avg_pool2d_forward<double>(padded, {}, x, y);
  EXPECT_EQ(std::vector<double>(y, y + 4), (std::vector<double>{1.5, 4.5, 7.5, 4.5}));
  avg_pool2d_forward<double>(padded, {.count_include_pad = false}, x, y);
  EXPECT_EQ(std::vector<double>(y, y + 4), (std::vector<double>{2, 4.5, 7.5, 9}));
}

}  // namespace
}  // namespace cresset
