// A vector with inline room for a few elements: sizes, strides and short argument lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace cresset {

/// Grows to any length; up to N elements live inside the object. T must be trivially copyable.
template <class T, uint32_t N> class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  SmallVector() noexcept = default;
  explicit SmallVector(size_t n, T value = T{}) { assign(n, value); }
  SmallVector(std::initializer_list<T> xs) { append(xs.begin(), xs.size()); }
  explicit SmallVector(std::span<const T> xs) { append(xs.data(), xs.size()); }
  SmallVector(const SmallVector& o) {
    if (o.size_ <= N) {
      // A copy of constant length is a few instructions; what lies behind the end does not matter.
      size_ = o.size_;
      std::memcpy(inline_, o.data_, sizeof inline_);
    } else {
      append(o.data(), o.size());
    }
  }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) {
      size_ = 0;
      append(o.data(), o.size());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      free_heap();
      take(o);
    }
    return *this;
  }
  ~SmallVector() { free_heap(); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  operator std::span<const T>() const noexcept { return {data_, size_}; }

  void clear() noexcept { size_ = 0; }
  void push_back(T x) {
    reserve(size_ + 1);
    data_[size_++] = x;
  }
  void pop_back() noexcept { --size_; }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  /// Makes room for n elements; their values are yet to be written.
  void resize_for_overwrite(size_t n) {
    reserve(n);
    size_ = static_cast<uint32_t>(n);
  }
  void assign(size_t n, T value) {
    size_ = 0;
    resize(n, value);
  }
  void insert(size_t at, T x) {
    push_back(x);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(size_t at) {
    std::move(data_ + at + 1, data_ + size_, data_ + at);
    --size_;
  }
  void append(const T* xs, size_t n) {
    reserve(size_ + n);
    if (n) std::memcpy(data_ + size_, xs, n * sizeof(T));
    size_ += static_cast<uint32_t>(n);
  }
  bool operator==(const SmallVector& o) const noexcept {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (data_[i] != o.data_[i]) return false;
    return true;
  }

 private:
  void reserve(size_t n) {
    if (n <= capacity_) return;
    size_t grown = std::max<size_t>(n, capacity_ * 2);
    T* heap = new T[grown];
    std::memcpy(heap, data_, size_ * sizeof(T));
    free_heap();
    data_ = heap;
    capacity_ = static_cast<uint32_t>(grown);
  }
  void free_heap() noexcept {
    if (data_ != inline_) delete[] data_;
    data_ = inline_;
    capacity_ = N;
  }
  void take(SmallVector& o) noexcept {
    size_ = o.size_;
    if (o.data_ == o.inline_) {
      data_ = inline_;
      capacity_ = N;
      std::memcpy(inline_, o.inline_, sizeof inline_);
    } else {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = N;
    }
    o.size_ = 0;
  }

  T* data_ = inline_;
  uint32_t size_ = 0, capacity_ = N;
  T inline_[N];
};

/// Sizes or strides of a tensor, in elements.
using Dims = SmallVector<int64_t, 6>;

}  // namespace cresset
