// The loops of the elementwise kernels. Before this text stand: V, the compute type; Row, the row's
// struct with load(params); T0.. and TOut, the memory types; Inputs<N> and apply(); PACK.
namespace cresset::cuda {

template <int N> __device__ inline void finish(const Row& row, const Inputs<N>& in, TOut* out) {
  Pack<TOut, N> result;
#pragma unroll
  for (int j = 0; j < N; ++j) result.v[j] = to_memory<TOut>(apply(row, in, j));
  store_pack<N>(out, result);
}

#ifdef FLAT
extern "C" __global__ void __launch_bounds__(256) row_kernel(const __grid_constant__ RowArgs args) {
  constexpr int times = flat_times(PACK);
  const Row row = Row::load(args.params);
  TOut* out = static_cast<TOut*>(args.out);
  const int64_t step = static_cast<int64_t>(blockDim.x) * PACK;
  int64_t at = static_cast<int64_t>(blockIdx.x) * step * times + threadIdx.x * PACK;
  if (at + (times - 1) * step + PACK <= args.n) {
    Inputs<PACK> in[times];
#pragma unroll
    for (int u = 0; u < times; ++u) in[u].load(args, at + u * step);
#pragma unroll
    for (int u = 0; u < times; ++u) finish<PACK>(row, in[u], out + at + u * step);
    return;
  }
#pragma unroll 1
  for (int u = 0; u < times; ++u, at += step) {
    if (at + PACK <= args.n) {
      Inputs<PACK> whole;
      whole.load(args, at);
      finish<PACK>(row, whole, out + at);
      continue;
    }
#pragma unroll 1
    for (int64_t i = at; i < args.n && i < at + PACK; ++i) {
      Inputs<1> one;
      one.load(args, i);
      finish<1>(row, one, out + i);
    }
  }
}
#else
extern "C" __global__ void __launch_bounds__(256)
    row_kernel(const __grid_constant__ RowArgs args, const __grid_constant__ Space<Index> space) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= args.n) return;
  const Row row = Row::load(args.params);
  Index offsets[most_inputs + 1] = {};
  Index rest = static_cast<Index>(item);
#pragma unroll 1
  for (int d = 0; d < space.rank; ++d) {
    Index quotient = 0;
    if (d + 1 < space.rank) {
      if constexpr (sizeof(Index) == 4)
        quotient =
            (__umulhi(static_cast<uint32_t>(rest), space.magic[d]) + static_cast<uint32_t>(rest)) >>
            space.shift[d];
      else
        quotient = rest / space.sizes[d];
    }
    const Index at = rest - quotient * space.sizes[d];
    rest = quotient;
    ADD_OFFSETS
  }
  Inputs<PACK> in;
  in.load(args, space, offsets);
  finish<PACK>(row, in, static_cast<TOut*>(args.out) + offsets[most_inputs]);
}
#endif

}  // namespace cresset::cuda
