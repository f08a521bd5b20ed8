// Stable sorting of keys within rows: short rows in shared memory, long ones by CUB's radix sort.
#include <cub/device/device_radix_sort.cuh>

#include "cuda/device.cuh"
#include "cuda/sort.h"
#include "cuda/sort_keys.cuh"

namespace cresset::cuda {
namespace {

constexpr int most_in_block = 2048;

// Bitonic sort (K. E. Batcher, "Sorting networks and their applications", 1968) of one row per
// block; ties go by place, which makes it stable.
__global__ void sort_block(const uint64_t* in, uint64_t* keys, uint32_t* places, int n, int size) {
  extern __shared__ __align__(16) char memory[];
  uint64_t* key = reinterpret_cast<uint64_t*>(memory);
  uint32_t* place = reinterpret_cast<uint32_t*>(key + size);
  const int64_t from = static_cast<int64_t>(blockIdx.x) * n;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    key[i] = i < n ? in[from + i] : ~uint64_t{0};
    place[i] = static_cast<uint32_t>(i);
  }
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int t = threadIdx.x; t < size / 2; t += blockDim.x) {
        const int a = 2 * t - (t & (step - 1)), b = a + step;
        const bool up = (a & run) == 0;
        const bool above = key[a] > key[b] || (key[a] == key[b] && place[a] > place[b]);
        if (above != up) continue;
        const uint64_t k = key[a];
        const uint32_t p = place[a];
        key[a] = key[b];
        place[a] = place[b];
        key[b] = k;
        place[b] = p;
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    keys[from + i] = key[i];
    places[from + i] = place[i];
  }
}

int bits_for(int64_t count) {
  int bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
  return bits;
}

void radix_sort(const uint64_t* in, uint64_t* out, const uint32_t* values_in, uint32_t* values_out,
                int64_t n, int bits, Device device) {
  size_t bytes = 0;
  cudaStream_t stream = current_stream();
  CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, in, out, values_in, values_out, n, 0,
                                             bits, stream));
  Tensor memory = scratch(bytes, device);
  CUDA_CHECK(cub::DeviceRadixSort::SortPairs(data_of(memory), bytes, in, out, values_in, values_out,
                                             n, 0, bits, stream));
}

// Rows whose elements number below 2^32 in all: by key, and then by row where both do not fit.
void sort_rows(uint64_t* in, uint64_t* keys, uint32_t* places, int64_t rows, int64_t n, int bits,
               Device device) {
  const int64_t count = rows * n;
  Tensor memory = scratch(sizeof(uint32_t) * static_cast<size_t>(count), device);
  uint32_t* number = data_of<uint32_t>(memory);
  const int row_bits = bits_for(rows);
  const bool joint = bits + row_bits <= 64;
  for_each(count, [=] __device__(int64_t i) {
    number[i] = static_cast<uint32_t>(i);
    if (joint && rows > 1) in[i] |= static_cast<uint64_t>(i / n) << bits;
  });
  radix_sort(in, keys, number, places, count, joint ? bits + row_bits : bits, device);
  if (rows == 1) return;
  if (!joint) {
    // A second stable pass by row; the keys follow through their numbers.
    Tensor row_memory = scratch(8 * static_cast<size_t>(count), device);
    Tensor spare = scratch(8 * static_cast<size_t>(count), device);
    uint64_t *row = data_of<uint64_t>(row_memory), *rest = data_of<uint64_t>(spare);
    for_each(count, [=] __device__(int64_t i) {
      row[i] = places[i] / static_cast<uint64_t>(n);
      number[i] = places[i];
    });
    radix_sort(row, rest, number, places, count, row_bits, device);
    for_each(count, [=] __device__(int64_t i) { keys[i] = in[places[i]]; });
  } else if (bits < 64) {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    for_each(count, [=] __device__(int64_t i) { keys[i] &= mask; });
  }
  for_each(count,
           [=] __device__(int64_t i) { places[i] = static_cast<uint32_t>(places[i] - i / n * n); });
}

}  // namespace

SortedKeys sort_keys(const Tensor& keys, int64_t rows, int64_t n, int bits) {
  const Device device = keys.device();
  const size_t count = static_cast<size_t>(rows * n);
  SortedKeys s{scratch(8 * count, device), scratch(4 * count, device)};
  s.keys = data_of<uint64_t>(s.key_memory);
  s.places = data_of<uint32_t>(s.place_memory);
  if (count == 0) return s;
  uint64_t* in = data_of<uint64_t>(keys);
  if (n <= most_in_block) {
    int size = 2;
    while (size < n) size *= 2;
    sort_block<<<static_cast<unsigned>(rows), std::clamp(size / 2, 32, 512),
                 static_cast<size_t>(size) * 12, current_stream()>>>(in, s.keys, s.places,
                                                                     static_cast<int>(n), size);
    check_launch();
    return s;
  }
  const int64_t group = std::max<int64_t>(1, ((int64_t{1} << 32) - 1) / n);
  for (int64_t r = 0; r < rows; r += group) {
    const int64_t at = r * n;
    sort_rows(in + at, s.keys + at, s.places + at, std::min(group, rows - r), n, bits, device);
  }
  return s;
}

int key_bits(DType dtype) { return static_cast<int>(itemsize(dtype)) * 8; }

Tensor make_keys(const Tensor& x, bool descending) {
  Tensor memory = scratch(8 * static_cast<size_t>(x.numel()), x.device());
  uint64_t* to = data_of<uint64_t>(memory);
  const void* from = data_of(x);
  const DType dtype = x.dtype();
  const int bits = key_bits(dtype);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t flip = descending ? mask : 0;
  for_each(x.numel(), [=] __device__(int64_t i) { to[i] = sort_key(from, dtype, i) ^ flip; });
  return memory;
}

}  // namespace cresset::cuda
