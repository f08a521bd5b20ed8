// Copies of strided memory: runs where both sides are contiguous, tiles where they are transposed.
#include "core/ops/copy_kernels.h"

#include <cstring>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

constexpr int64_t grain_bytes = 1 << 18;
constexpr int64_t tile = 16;
/// Tiles are visited in plates of this side, whose memory pages the TLB holds on both sides.
constexpr int64_t plate = 64;

struct Pair16 {
  uint64_t a, b;
};

template <class F> void visit_size(int64_t size, F&& f) {
  switch (size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Pair16>();
  }
}

// Orders dims by falling destination stride, drops those of size 1 and merges neighbours.
void simplify(StridedCopy& c) {
  Dims sizes, to, from;
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    if (c.sizes[i] == 1) continue;
    size_t at = sizes.size();
    while (at > 0 && to[at - 1] < c.to_strides[i]) --at;
    sizes.insert(at, c.sizes[i]);
    to.insert(at, c.to_strides[i]);
    from.insert(at, c.from_strides[i]);
  }
  size_t kept = 0;
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (to[kept] == to[i] * sizes[i] && from[kept] == from[i] * sizes[i]) {
      sizes[kept] *= sizes[i];
      to[kept] = to[i];
      from[kept] = from[i];
    } else {
      ++kept;
      sizes[kept] = sizes[i];
      to[kept] = to[i];
      from[kept] = from[i];
    }
  }
  size_t rank = sizes.empty() ? 0 : kept + 1;
  sizes.resize(rank), to.resize(rank), from.resize(rank);
  c.sizes = sizes, c.to_strides = to, c.from_strides = from;
}

/// Walks an index space of outer dims, keeping both element offsets.
class Walk {
 public:
  Walk(const Dims& sizes, const Dims& to, const Dims& from, int64_t linear)
      : sizes_(sizes), to_(to), from_(from), at_(sizes.size()) {
    for (size_t d = sizes.size(); d-- > 0;) {
      at_[d] = linear % sizes[d];
      linear /= sizes[d];
      to_offset += at_[d] * to[d];
      from_offset += at_[d] * from[d];
    }
  }
  void next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      to_offset += to_[d];
      from_offset += from_[d];
      if (++at_[d] < sizes_[d]) return;
      at_[d] = 0;
      to_offset -= to_[d] * sizes_[d];
      from_offset -= from_[d] * sizes_[d];
    }
  }
  int64_t to_offset = 0, from_offset = 0;

 private:
  const Dims &sizes_, &to_, &from_;
  Dims at_;
};

int64_t product(const Dims& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

struct Outer {
  Dims sizes, to, from;
};

// All dims but those given (b may be -1).
Outer outer_dims(const StridedCopy& c, int64_t a, int64_t b) {
  Outer o;
  for (int64_t i = 0; i < static_cast<int64_t>(c.sizes.size()); ++i) {
    if (i == a || i == b) continue;
    o.sizes.push_back(c.sizes[i]);
    o.to.push_back(c.to_strides[i]);
    o.from.push_back(c.from_strides[i]);
  }
  return o;
}

template <class T>
void copy_row(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t n) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, n, *from);
  } else if (to_step == 1 && from_step == -1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

template <class T> void copy_rows(const StridedCopy& c) {
  int64_t last = static_cast<int64_t>(c.sizes.size()) - 1;
  int64_t n = c.sizes[last], to_step = c.to_strides[last], from_step = c.from_strides[last];
  Outer o = outer_dims(c, last, -1);
  int64_t rows = product(o.sizes);
  T* to = reinterpret_cast<T*>(c.to);
  const T* from = reinterpret_cast<const T*>(c.from);
  int64_t grain = std::max<int64_t>(1, grain_bytes / static_cast<int64_t>(sizeof(T)));
  if (rows == 1) {
    parallel_for(0, n, grain, [&](int64_t lo, int64_t hi) {
      copy_row(to + lo * to_step, to_step, from + lo * from_step, from_step, hi - lo);
    });
    return;
  }
  parallel_for(0, rows, std::max<int64_t>(1, grain / n), [&](int64_t lo, int64_t hi) {
    Walk w(o.sizes, o.to, o.from, lo);
    for (int64_t r = lo; r < hi; ++r, w.next())
      copy_row(to + w.to_offset, to_step, from + w.from_offset, from_step, n);
  });
}

using Four32 = uint32_t __attribute__((vector_size(16)));
using Two64 = uint64_t __attribute__((vector_size(16)));

template <class V> V load_vector(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}

// to[j][k] = from[k][j] for a whole tile, in blocks of 4 x 4.
void turn_tile(uint32_t* to, int64_t to_step, const uint32_t (*from)[tile]) {
  for (int64_t k = 0; k < tile; k += 4)
    for (int64_t j = 0; j < tile; j += 4) {
      Four32 a = load_vector<Four32>(&from[k][j]), b = load_vector<Four32>(&from[k + 1][j]);
      Four32 c = load_vector<Four32>(&from[k + 2][j]), d = load_vector<Four32>(&from[k + 3][j]);
      Four32 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      Four32 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      Four32 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      Four32 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      Four32 rows[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                        __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
      for (int64_t i = 0; i < 4; ++i)
        std::memcpy(to + (j + i) * to_step + k, &rows[i], sizeof(Four32));
    }
}

void turn_tile(uint64_t* to, int64_t to_step, const uint64_t (*from)[tile]) {
  for (int64_t k = 0; k < tile; k += 2)
    for (int64_t j = 0; j < tile; j += 2) {
      Two64 a = load_vector<Two64>(&from[k][j]), b = load_vector<Two64>(&from[k + 1][j]);
      Two64 rows[2] = {__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3)};
      for (int64_t i = 0; i < 2; ++i)
        std::memcpy(to + (j + i) * to_step + k, &rows[i], sizeof(Two64));
    }
}

// One tile of a transposed plane: `from` is contiguous along rows of the result, `to` along its
// columns. The buffer keeps lines that are a power of two apart from evicting each other.
template <class T>
void copy_tile(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t rows,
               int64_t columns) {
  alignas(64) T buffer[tile][tile];
  if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>) {
    if (rows == tile && columns == tile) {
      for (int64_t k = 0; k < tile; ++k)
        std::memcpy(buffer[k], from + k * from_step, sizeof(buffer[k]));
      turn_tile(to, to_step, buffer);
      return;
    }
  }
  for (int64_t k = 0; k < columns; ++k)
    std::memcpy(buffer[k], from + k * from_step, static_cast<size_t>(rows) * sizeof(T));
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) to[j * to_step + k] = buffer[k][j];
}

template <class T> void copy_transposed(const StridedCopy& c, int64_t row_dim) {
  int64_t last = static_cast<int64_t>(c.sizes.size()) - 1;
  int64_t rows = c.sizes[row_dim], columns = c.sizes[last];
  int64_t to_step = c.to_strides[row_dim], from_step = c.from_strides[last];
  Outer o = outer_dims(c, row_dim, last);
  int64_t bands = (rows + plate - 1) / plate;
  T* to = reinterpret_cast<T*>(c.to);
  const T* from = reinterpret_cast<const T*>(c.from);
  int64_t band_bytes = columns * plate * static_cast<int64_t>(sizeof(T));
  int64_t grain = std::max<int64_t>(1, grain_bytes / band_bytes);
  parallel_for(0, product(o.sizes) * bands, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p) {
      Walk w(o.sizes, o.to, o.from, p / bands);
      int64_t top = p % bands * plate, bottom = std::min(rows, top + plate);
      for (int64_t left = 0; left < columns; left += plate) {
        int64_t right = std::min(columns, left + plate);
        for (int64_t j = top; j < bottom; j += tile)
          for (int64_t k = left; k < right; k += tile)
            copy_tile(to + w.to_offset + j * to_step + k, to_step,
                      from + w.from_offset + j + k * from_step, from_step,
                      std::min(tile, bottom - j), std::min(tile, right - k));
      }
    }
  });
}

void strided(StridedCopy c) {
  for (int64_t s : c.sizes)
    if (s == 0) return;
  simplify(c);
  if (c.to == c.from && c.to_strides == c.from_strides) return;
  size_t rank = c.sizes.size();
  if (rank == 0) {
    std::memcpy(c.to, c.from, static_cast<size_t>(c.size));
    return;
  }
  int64_t row_dim = -1;
  if (c.to_strides[rank - 1] == 1 && c.from_strides[rank - 1] > 1 && c.sizes[rank - 1] >= 4)
    for (size_t i = 0; i + 1 < rank; ++i)
      if (c.from_strides[i] == 1 && c.sizes[i] >= 4) row_dim = static_cast<int64_t>(i);
  visit_size(c.size, [&]<class T>() {
    if (row_dim >= 0)
      copy_transposed<T>(c, row_dim);
    else
      copy_rows<T>(c);
  });
}

void triangle(const Tensor& from, const Tensor& to, int64_t diagonal, bool upper) {
  int64_t rows = to.size(-2), columns = to.size(-1);
  int64_t size = static_cast<int64_t>(itemsize(to.dtype()));
  if (to.numel() == 0) return;
  const char* src = static_cast<const char*>(from.data());
  char* dst = static_cast<char*>(to.data());
  int64_t width = columns * size;
  parallel_for(0, to.numel() / columns, std::max<int64_t>(1, grain_bytes / width),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t r = lo; r < hi; ++r) {
                   // The first column that is right of the diagonal (lower) or on it (upper).
                   int64_t edge = r % rows + diagonal + (upper ? 0 : 1);
                   int64_t cut = std::clamp<int64_t>(edge, 0, columns) * size;
                   char* d = dst + r * width;
                   const char* s = src + r * width;
                   int64_t begin = upper ? cut : 0, end = upper ? width : cut;
                   if (d != s) std::memcpy(d + begin, s + begin, static_cast<size_t>(end - begin));
                   std::memset(d, 0, static_cast<size_t>(begin));
                   std::memset(d + end, 0, static_cast<size_t>(width - end));
                 }
               });
}

}  // namespace

template <> const CopyKernels& cpu_kernels<CopyKernels>() {
  static constexpr CopyKernels table = {.strided = strided, .triangle = triangle};
  return table;
}

}  // namespace cresset
