// The thread count and the parallel region behind `parallel_for`: OpenMP, a pool, or inline.
#include "core/cpu/parallel.h"

#include <algorithm>
#include <atomic>

#if defined(_OPENMP)
#include <omp.h>
#elif defined(__EMSCRIPTEN_PTHREADS__)
#include "core/cpu/thread_pool.h"
#endif

namespace cresset {
namespace {

thread_local bool inside_region = false;

/// Marks the calling thread as part of a region for the lifetime of the object.
class RegionMark {
 public:
  RegionMark() { inside_region = true; }
  ~RegionMark() { inside_region = false; }
  RegionMark(const RegionMark&) = delete;
  RegionMark& operator=(const RegionMark&) = delete;
};

int initial_threads() {
#if defined(_OPENMP)
  return std::max(1, omp_get_max_threads());
#else
  return 1;
#endif
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{initial_threads()};
  return count;
}

int64_t piece_count(int64_t range, int64_t grain) {
  int64_t step = std::max<int64_t>(grain, 1);
  return std::min<int64_t>(num_threads(), (range + step - 1) / step);
}

/// Runs piece `index` of `count` almost equal pieces.
void run_piece(int64_t index, int64_t count, int64_t begin, int64_t end, detail::RangeBody body,
               void* context) {
  RegionMark mark;
  int64_t range = end - begin;
  int64_t base = range / count, extra = range % count;
  int64_t lo = begin + index * base + std::min(index, extra);
  int64_t hi = lo + base + (index < extra ? 1 : 0);
  if (lo < hi) body(context, lo, hi);
}

}  // namespace

int num_threads() {
  int wanted = thread_count().load(std::memory_order_relaxed);
#if defined(__EMSCRIPTEN_PTHREADS__)
  return std::min(wanted, thread_pool().helpers() + 1);
#else
  return wanted;
#endif
}

void set_num_threads(int count) {
  thread_count().store(std::max(1, count), std::memory_order_relaxed);
  sync_openmp_threads();
}

bool in_parallel_region() {
#if defined(_OPENMP)
  return inside_region || omp_in_parallel();
#else
  return inside_region;
#endif
}

void sync_openmp_threads() {
#if defined(_OPENMP)
  if (omp_get_max_threads() != num_threads()) omp_set_num_threads(num_threads());
#endif
}

namespace detail {

bool worth_parallel(int64_t range, int64_t grain) {
  return range > grain && range > 1 && num_threads() > 1 && !in_parallel_region();
}

void run_parallel(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context) {
  int64_t count = piece_count(end - begin, grain);
#if defined(_OPENMP)
#pragma omp parallel num_threads(static_cast <int>(count))
  {
    // OpenMP may grant fewer threads than asked for: each takes every n-th piece.
    int64_t granted = omp_get_num_threads();
    for (int64_t i = omp_get_thread_num(); i < count; i += granted) {
      run_piece(i, count, begin, end, body, context);
    }
  }
#elif defined(__EMSCRIPTEN_PTHREADS__)
  struct Region {
    int64_t begin, end, count;
    RangeBody body;
    void* context;
  } region{begin, end, count, body, context};
  auto piece = [](void* pointer, int64_t index) {
    auto& r = *static_cast<Region*>(pointer);
    run_piece(index, r.count, r.begin, r.end, r.body, r.context);
  };
  thread_pool().run(count, piece, &region);
#else
  for (int64_t i = 0; i < count; ++i) run_piece(i, count, begin, end, body, context);
#endif
}

}  // namespace detail
}  // namespace cresset
