// Stable sorting of unsigned keys within rows, for the families that order elements.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::cuda {

/// Rows of keys in ascending order, and the place within its row that each came from.
struct SortedKeys {
  Tensor key_memory, place_memory;
  uint64_t* keys = nullptr;
  uint32_t* places = nullptr;
};

/// Sorts `rows` rows of n keys that use their lowest `bits` bits; the keys are written over.
/// `keys` is memory of 8 bytes per key. n is below 2^32.
SortedKeys sort_keys(const Tensor& keys, int64_t rows, int64_t n, int bits);

/// Bits that the sort keys of a real dtype use.
int key_bits(DType dtype);
/// Sort keys of all elements: key(a) < key(b) exactly where a < b, reversed when `descending`; NaN,
/// all of them equal, is the largest.
Tensor make_keys(const Tensor& x, bool descending);

}  // namespace cresset::cuda
