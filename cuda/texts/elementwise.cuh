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
// One pack of 16 bytes per thread: more of them, or larger blocks, were slower on an H200.
extern "C" __global__ void __launch_bounds__(flat_threads)
    row_kernel(const __grid_constant__ RowArgs args) {
  wait_for_stream();
  const Row row = Row::load(args.params);
  TOut* out = static_cast<TOut*>(args.out);
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * PACK;
  if (at + PACK <= args.n) {
    Inputs<PACK> whole;
    whole.load(args, at);
    finish<PACK>(row, whole, out + at);
    return;
  }
#pragma unroll 1
  for (int64_t i = at; i < args.n; ++i) {
    Inputs<1> one;
    one.load(args, i);
    finish<1>(row, one, out + i);
  }
}
#elif defined(TILED)
// A block computes 32 x 32 elements of dims 0 and 1, a warp along dim 0 at a time. Operands that
// lie along dim 1 are read along it first.
extern "C" __global__ void __launch_bounds__(shape_threads)
    row_kernel(const __grid_constant__ RowArgs args, const __grid_constant__ Space<Index> space) {
  wait_for_stream();
  TILES
  const Row row = Row::load(args.params);
  const int tiles0 = (space.sizes[0] + 31) / 32, tiles1 = (space.sizes[1] + 31) / 32;
  Index rest = static_cast<Index>(blockIdx.x);
  const Index first0 = rest % tiles0 * 32;
  rest /= tiles0;
  const Index first1 = rest % tiles1 * 32;
  rest /= tiles1;
  Index offsets[most_inputs + 1] = {};
#pragma unroll 1
  for (int d = 2; d < space.rank; ++d) {
    const Index quotient = rest / space.sizes[d], at = rest - quotient * space.sizes[d];
    rest = quotient;
    ADD_OFFSETS
  }
  const int x = threadIdx.x % 32;
#pragma unroll
  for (int y = threadIdx.x / 32; y < 32; y += 8) {
    const Index a = first0 + y, b = first1 + x;
    if (a < space.sizes[0] && b < space.sizes[1]) {
      FILL_TILES
    }
  }
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.x / 32; y < 32; y += 8) {
    const Index a = first0 + x, b = first1 + y;
    if (a >= space.sizes[0] || b >= space.sizes[1]) continue;
    Index places[most_inputs + 1];
#pragma unroll
    for (int k = 0; k <= most_inputs; ++k)
      places[k] = offsets[k] + a * space.strides[k][0] + b * space.strides[k][1];
    Inputs<1> in;
    in.load(args, space, places);
    PUT_TILES
    finish<1>(row, in, static_cast<TOut*>(args.out) + places[most_inputs]);
  }
}
#else
extern "C" __global__ void __launch_bounds__(shape_threads)
    row_kernel(const __grid_constant__ RowArgs args, const __grid_constant__ Space<Index> space) {
  wait_for_stream();
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
