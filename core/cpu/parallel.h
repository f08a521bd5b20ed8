// Splits a range of work over the CPU threads: `parallel_for` and the thread count.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace cresset {

/// Number of threads a parallel region uses; starts at OMP_NUM_THREADS or the core count.
int num_threads();

/// Sets the number of threads; values below 1 count as 1.
void set_num_threads(int count);

/// True inside a function that runs as part of a parallel region.
bool in_parallel_region();

/// Into how many pieces work is best cut: several for each thread, so that none waits long for
/// another. 1 where regions run inline.
int64_t balanced_pieces();

/// Makes the calling thread's OpenMP setting follow `num_threads()`, or 1 inside a region, for
/// libraries that read it.
void sync_openmp_threads();

namespace detail {
using RangeBody = void (*)(void* context, int64_t lo, int64_t hi);

/// Whether a region may use more than one thread: there are several, and none is running already.
bool may_share();
void run_parallel(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context);
}  // namespace detail

/// Calls `f(lo, hi)` on disjoint pieces that cover [begin, end), none shorter than `grain` but for
/// the rounding; threads take one after the other. Runs inline when the range is at most `grain`,
/// with one thread, or inside another region. `f` must not throw.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  const int64_t range = end - begin;
  if (range <= grain || range == 1 || !detail::may_share()) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  auto call = [](void* context, int64_t lo, int64_t hi) { (*static_cast<Body*>(context))(lo, hi); };
  void* context = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  detail::run_parallel(begin, end, grain, call, context);
}

}  // namespace cresset
