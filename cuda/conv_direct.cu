// Convolutions by plain loops, and what surrounds those of cuDNN.
#include "cuda/conv.h"
#include "cuda/rows.cuh"

namespace cresset::cuda {
namespace {

/// A volume's extents, small enough to compute places quickly.
struct Volume {
  int64_t d, h, w;
  explicit Volume(const ConvNdShape::Extent& e) : d(e[0]), h(e[1]), w(e[2]) {}
  __host__ __device__ int64_t size() const { return d * h * w; }
};

template <class T>
void shift_as(const Tensor& x, const Tensor& y, int64_t planes, int64_t inner, Volume from,
              Volume to, Volume shift) {
  const T* in = pointer<T>(x);
  T* out = pointer<T>(y);
  for_each(planes * to.size() * inner, [=] __device__(int64_t i) {
    const int64_t e = i % inner, at = i / inner;
    const int64_t k = at % to.w, j = at / to.w % to.h, rest = at / to.w / to.h;
    const int64_t z = rest % to.d - shift.d, r = j - shift.h, c = k - shift.w;
    const bool inside = z >= 0 && z < from.d && r >= 0 && r < from.h && c >= 0 && c < from.w;
    out[i] = inside
                 ? in[((rest / to.d * from.d + z) * from.h * from.w + r * from.w + c) * inner + e]
                 : T{};
  });
}

/// ConvNdShape for the loops.
struct Loops {
  int64_t c_in, c_out, in_group, out_group;  ///< channels, and channels of a group
  Volume in, kernel, out, stride, pad, dilation;
  explicit Loops(const ConvNdShape& s)
      : c_in(s.c_in),
        c_out(s.c_out),
        in_group(s.c_in / s.groups),
        out_group(s.c_out / s.groups),
        in(s.in),
        kernel(s.kernel),
        out(s.out),
        stride(s.stride),
        pad(s.pad_before),
        dilation(s.dilation) {}
};

struct Place {
  int64_t z, y, x;
};
__device__ Place place(int64_t i, const Volume& v) {
  return {i / v.w / v.h, i / v.w % v.h, i % v.w};
}

/// The input index along an axis of tap k of result o.
__device__ int64_t source(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t dilation) {
  return o * stride - pad + k * dilation;
}

template <class T>
void forward_as(const ConvNdShape& s, const Tensor& tx, const Tensor& tw, const Tensor& tb,
                const Tensor& ty) {
  const Loops p(s);
  const T *x = pointer<T>(tx), *w = pointer<T>(tw), *bias = pointer<T>(tb);
  T* y = pointer<T>(ty);
  for_each(ty.numel(), [=] __device__(int64_t i) {
    const int64_t volume = p.out.size(), plane = i / volume, co = plane % p.c_out;
    const Place o = place(i % volume, p.out);
    const int64_t first = plane / p.c_out * p.c_in + co / p.out_group * p.in_group;
    T sum = bias ? bias[co] : T(0);
    for (int64_t c = 0; c < p.in_group; ++c)
      for (int64_t k = 0; k < p.kernel.size(); ++k) {
        const Place t = place(k, p.kernel);
        const int64_t z = source(o.z, t.z, p.stride.d, p.pad.d, p.dilation.d);
        const int64_t r = source(o.y, t.y, p.stride.h, p.pad.h, p.dilation.h);
        const int64_t q = source(o.x, t.x, p.stride.w, p.pad.w, p.dilation.w);
        if (z < 0 || z >= p.in.d || r < 0 || r >= p.in.h || q < 0 || q >= p.in.w) continue;
        sum = sum + x[((first + c) * p.in.d + z) * p.in.h * p.in.w + r * p.in.w + q] *
                        w[(co * p.in_group + c) * p.kernel.size() + k];
      }
    y[i] = sum;
  });
}

/// The result whose tap k reads element i along an axis, or -1.
__device__ int64_t target(int64_t i, int64_t k, int64_t stride, int64_t pad, int64_t dilation,
                          int64_t out) {
  const int64_t at = i + pad - k * dilation;
  return at >= 0 && at % stride == 0 && at / stride < out ? at / stride : -1;
}

template <class T>
void backward_input_as(const ConvNdShape& s, const Tensor& tg, const Tensor& tw, const Tensor& tx) {
  const Loops p(s);
  const T *g = pointer<T>(tg), *w = pointer<T>(tw);
  T* gx = pointer<T>(tx);
  for_each(tx.numel(), [=] __device__(int64_t i) {
    const int64_t volume = p.in.size(), plane = i / volume, ci = plane % p.c_in;
    const Place e = place(i % volume, p.in);
    const int64_t n = plane / p.c_in, group = ci / p.in_group;
    T sum = T(0);
    for (int64_t k = 0; k < p.kernel.size(); ++k) {
      const Place t = place(k, p.kernel);
      const int64_t z = target(e.z, t.z, p.stride.d, p.pad.d, p.dilation.d, p.out.d);
      const int64_t r = target(e.y, t.y, p.stride.h, p.pad.h, p.dilation.h, p.out.h);
      const int64_t q = target(e.x, t.x, p.stride.w, p.pad.w, p.dilation.w, p.out.w);
      if (z < 0 || r < 0 || q < 0) continue;
      for (int64_t c = group * p.out_group; c < (group + 1) * p.out_group; ++c)
        sum = sum + g[((n * p.c_out + c) * p.out.d + z) * p.out.h * p.out.w + r * p.out.w + q] *
                        w[(c * p.in_group + ci % p.in_group) * p.kernel.size() + k];
    }
    gx[i] = sum;
  });
}

template <class T>
void backward_weight_as(const ConvNdShape& s, const Tensor& tx, const Tensor& tg,
                        const Tensor& tw) {
  const Loops p(s);
  const T *x = pointer<T>(tx), *g = pointer<T>(tg);
  T* gw = pointer<T>(tw);
  const int64_t n = s.n;
  for_each(tw.numel(), [=] __device__(int64_t i) {
    const int64_t taps = p.kernel.size(), co = i / taps / p.in_group;
    const int64_t ci = co / p.out_group * p.in_group + i / taps % p.in_group;
    const Place t = place(i % taps, p.kernel);
    T sum = T(0);
    for (int64_t b = 0; b < n; ++b)
      for (int64_t at = 0; at < p.out.size(); ++at) {
        const Place o = place(at, p.out);
        const int64_t z = source(o.z, t.z, p.stride.d, p.pad.d, p.dilation.d);
        const int64_t r = source(o.y, t.y, p.stride.h, p.pad.h, p.dilation.h);
        const int64_t q = source(o.x, t.x, p.stride.w, p.pad.w, p.dilation.w);
        if (z < 0 || z >= p.in.d || r < 0 || r >= p.in.h || q < 0 || q >= p.in.w) continue;
        sum = sum + x[((b * p.c_in + ci) * p.in.d + z) * p.in.h * p.in.w + r * p.in.w + q] *
                        g[(b * p.c_out + co) * p.out.size() + at];
      }
    gw[i] = sum;
  });
}

template <class F> void visit_direct(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Int64: return f.template operator()<int64_t>();
    case DType::Complex64: return f.template operator()<Complex<float>>();
    case DType::Complex128: return f.template operator()<Complex<double>>();
    default:
      fail(ErrorKind::NotImplemented, launching_op(), ": no such convolution on cuda of dtype ",
           dtype);
  }
}

}  // namespace

void shift_volumes(const Tensor& x, const Tensor& y, int64_t planes, int64_t inner,
                   const ConvNdShape::Extent& from, const ConvNdShape::Extent& to,
                   const ConvNdShape::Extent& shift) {
  visit_size(itemsize(y.dtype()), [&]<class T>() {
    shift_as<T>(x, y, planes, inner, Volume(from), Volume(to), Volume(shift));
  });
}

void direct_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                    const Tensor& y) {
  visit_direct(y.dtype(), [&]<class T>() { forward_as<T>(s, x, w, bias, y); });
}
void direct_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w,
                           const Tensor& gx) {
  visit_direct(gx.dtype(), [&]<class T>() { backward_input_as<T>(s, gy, w, gx); });
}
void direct_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy,
                            const Tensor& gw) {
  visit_direct(gw.dtype(), [&]<class T>() { backward_weight_as<T>(s, x, gy, gw); });
}

}  // namespace cresset::cuda
