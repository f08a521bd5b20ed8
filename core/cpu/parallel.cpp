// The thread count and the parallel region behind `parallel_for`: the thread pool, or inline.
#include "core/cpu/parallel.h"

#include <algorithm>
#include <atomic>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#include "core/cpu/thread_pool.h"
#define CRESSET_THREADS 1
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

constexpr int64_t pieces_per_thread = 4;

// A multiple of the thread count, once there is a piece for each.
int64_t piece_count(int64_t range, int64_t grain) {
  const int64_t step = std::max<int64_t>(grain, 1), threads = num_threads();
  const int64_t most = (range + step - 1) / step;
  return std::min(most, std::clamp<int64_t>(most / threads, 1, pieces_per_thread) * threads);
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

bool in_parallel_region() { return inside_region; }

int64_t balanced_pieces() {
  const int64_t threads = num_threads();
  return threads == 1 || in_parallel_region() ? 1 : threads * pieces_per_thread;
}

void sync_openmp_threads() {
#if defined(_OPENMP)
  const int wanted = in_parallel_region() ? 1 : num_threads();
  if (omp_get_max_threads() != wanted) omp_set_num_threads(wanted);
#endif
}

namespace detail {

bool may_share() { return num_threads() > 1 && !in_parallel_region(); }

void run_parallel(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context) {
  int64_t count = piece_count(end - begin, grain);
#if defined(CRESSET_THREADS)
  struct Region {
    int64_t begin, end, count;
    RangeBody body;
    void* context;
  } region{begin, end, count, body, context};
  auto piece = [](void* pointer, int64_t index) {
    auto& r = *static_cast<Region*>(pointer);
    run_piece(index, r.count, r.begin, r.end, r.body, r.context);
  };
  thread_pool().run(count, num_threads(), piece, &region);
#else
  for (int64_t i = 0; i < count; ++i) run_piece(i, count, begin, end, body, context);
#endif
}

}  // namespace detail
}  // namespace cresset
