// Intrusive reference counting: RefCounted objects and the Ref<T> handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/base/pool.h"

namespace cresset {

/// Base of objects owned by Ref<T>. `destroy` may be overridden to defer or recycle the memory.
class RefCounted : public Pooled {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Gives up one reference and says whether it was the last, whose owner then destroys the object.
  /// The last owner needs no atomic operation: nobody else is there to change the count.
  bool release() const noexcept {
    return refs_.load(std::memory_order_acquire) == 1 ||
           refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// What `retain` does, for an object that no other thread knows yet.
  void retain_unshared() const noexcept {
    refs_.store(refs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint32_t use_count() const noexcept { return refs_.load(std::memory_order_relaxed); }

  virtual void destroy() noexcept { delete this; }

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

/// Owning pointer to a RefCounted object; null when default-constructed.
template <class T> class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U> Ref(const Ref<U>& o) noexcept : Ref(static_cast<T*>(o.get())) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->release()) destroy(p_);
  }
  /// Owns a new object, which no other thread knows yet.
  static Ref of_new(T* p) noexcept {
    p->retain_unshared();
    Ref r;
    r.p_ = p;
    return r;
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  bool operator==(const Ref& o) const noexcept { return p_ == o.p_; }

 private:
  // In one place, for handles end everywhere; without a virtual call where the class is known.
  [[gnu::noinline]] static void destroy(T* p) noexcept {
    if constexpr (std::is_final_v<T> && requires { &T::destroy == &RefCounted::destroy; })
      delete p;
    else
      static_cast<RefCounted*>(p)->destroy();
  }
  T* p_ = nullptr;
};

template <class T, class... Args> Ref<T> make_ref(Args&&... args) {
  return Ref<T>::of_new(new T(std::forward<Args>(args)...));
}

}  // namespace cresset
