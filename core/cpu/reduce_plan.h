// The geometry of a reduction, and the loop over its outputs that every reduction shares.
#pragma once

#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/tensor/tensor.h"

namespace cresset {

/// Kept and reduced dims of a strided tensor, each sorted by falling stride and merged.
struct ReducePlan {
  Dims kept, kept_in, kept_out;  // sizes, strides in the input, strides in the output
  Dims red, red_in;              // never empty: a run of one element stands for no dims
  int64_t outputs = 1, length = 1;
  bool columns = false;  // neighbours in memory belong to different outputs
};

/// `over` = the reduced dims, sorted. The output is contiguous in the order of the kept dims.
ReducePlan plan_reduction(const Tensor& x, std::span<const int64_t> over);

/// Walks an index space in row-major order and keeps two offsets.
class Odometer {
 public:
  Odometer(std::span<const int64_t> sizes, std::span<const int64_t> a, std::span<const int64_t> b,
           int64_t at)
      : sizes_(sizes), a_(a), b_(b), index_(sizes.size()) {
    for (size_t i = sizes.size(); i-- > 0;) {
      index_[i] = at % sizes[i];
      at /= sizes[i];
      first += index_[i] * a[i];
      second += index_[i] * b[i];
    }
  }
  void next() {
    for (size_t i = sizes_.size(); i-- > 0;) {
      first += a_[i];
      second += b_[i];
      if (++index_[i] < sizes_[i]) return;
      first -= a_[i] * sizes_[i];
      second -= b_[i] * sizes_[i];
      index_[i] = 0;
    }
  }
  int64_t first = 0, second = 0;

 private:
  std::span<const int64_t> sizes_, a_, b_;
  Dims index_;
};

namespace reduce_detail {

constexpr int64_t column_block = 256;
constexpr int64_t grain = 32768;
constexpr int64_t most_splits = 32;

inline std::span<const int64_t> but_last(const Dims& d) { return {d.data(), d.size() - 1}; }

// Calls body(pointer, count) for the runs [lo, hi) of the reduced space, whose innermost dim is cut
// into `pieces` runs.
template <class In, class Body>
void for_runs(const ReducePlan& p, const In* x, int64_t lo, int64_t hi, int64_t pieces,
              Body&& body) {
  const int64_t n = p.red.back(), stride = p.red_in.back();
  int64_t step = (n + pieces - 1) / pieces;
  // Long pieces start on cache lines, or every vector load would touch two.
  if (step >= 1024) step = (step + 63) / 64 * 64;
  const auto outer = but_last(p.red_in);
  Odometer rows(but_last(p.red), outer, outer, lo / pieces);
  for (int64_t u = lo; u < hi; ++u) {
    const int64_t piece = u % pieces, from = piece * step;
    const int64_t count = std::min(step, n - from);
    if (count > 0) body(x + rows.first + from * stride, count);
    if (piece + 1 == pieces) rows.next();
  }
}

// One task: up to column_block neighbouring outputs.
template <class F> class Task {
 public:
  using In = typename F::In;
  using Acc = typename F::Acc;

  Task(const F& f, const ReducePlan& p, const In* x, int64_t pieces) : f_(f), p_(p), x_(x) {
    pieces_ = pieces;
    width_ = p.columns ? p.kept.back() : 1;
    blocks_ = (width_ + column_block - 1) / column_block;
  }

  // Folds the runs [lo, hi) of task t into acc.
  void fold(int64_t t, int64_t lo, int64_t hi, Acc* acc) const {
    const auto [in, out, cols] = place(t);
    for (int64_t j = 0; j < cols; ++j) acc[j] = f_.identity();
    const int64_t stride = p_.red_in.back(), out_at = out, n_cols = cols;
    for_runs(p_, x_ + in, lo, hi, pieces_, [&](const In* x, int64_t n) {
      if (!p_.columns) return f_.row(acc[0], x, n, stride, out_at);
      f_.columns(acc, x, n, stride, n_cols, p_.kept_in.back(), out_at, p_.kept_out.back());
    });
  }
  void finish(int64_t t, const Acc* acc) const {
    const auto [in, out, cols] = place(t);
    for (int64_t j = 0; j < cols; ++j)
      f_.finish(acc[j], out + (p_.columns ? j * p_.kept_out.back() : 0));
  }
  void merge(int64_t t, Acc* acc, const Acc* other) const {
    const int64_t cols = place(t).cols;
    for (int64_t j = 0; j < cols; ++j) f_.merge(acc[j], other[j]);
  }

 private:
  struct Place {
    int64_t in, out, cols;
  };
  Place place(int64_t t) const {
    const size_t rank = p_.kept.size() - (p_.columns ? 1 : 0);
    Odometer at({p_.kept.data(), rank}, {p_.kept_in.data(), rank}, {p_.kept_out.data(), rank},
                t / blocks_);
    if (!p_.columns) return {at.first, at.second, 1};
    const int64_t from = t % blocks_ * column_block;
    return {at.first + from * p_.kept_in.back(), at.second + from * p_.kept_out.back(),
            std::min(column_block, width_ - from)};
  }
  const F& f_;
  const ReducePlan& p_;
  const In* x_;
  int64_t pieces_, width_, blocks_;
};

// The outputs [lo, hi) of a plan whose runs lie in memory one output after another.
template <class F>
void fold_rows(const F& f, const ReducePlan& p, const typename F::In* x, int64_t lo, int64_t hi) {
  using In = typename F::In;
  const int64_t n = p.red.back(), stride = p.red_in.back(), rows = n ? p.length / n : 0;
  Odometer at(p.kept, p.kept_in, p.kept_out, lo);
  for (int64_t i = lo; i < hi; ++i, at.next()) {
    typename F::Acc acc = f.identity();
    if (rows == 1) {
      f.row(acc, x + at.first, n, stride, at.second);
    } else {
      for_runs(p, x + at.first, 0, rows, 1,
               [&](const In* run, int64_t count) { f.row(acc, run, count, stride, at.second); });
    }
    f.finish(acc, at.second);
  }
}

}  // namespace reduce_detail

/// Runs a fold F over a plan. F has In, Acc, identity(), merge(acc&, acc), finish(acc, output
/// index), row(acc&, x, n, stride, output index), and columns(acc*, x, rows, stride, cols,
/// column stride, output index, output stride). Few long outputs are split over the threads.
template <class F> void run_fold(const F& f, const ReducePlan& p, const typename F::In* x) {
  using namespace reduce_detail;
  using Acc = typename F::Acc;
  if (p.outputs == 0) return;
  const int64_t width = p.columns ? p.kept.back() : 1, block = std::min(width, column_block);
  const int64_t tasks = p.outputs / width * ((width + column_block - 1) / column_block);
  const int64_t n = p.red.back(), rows = n ? p.length / n : 0, work = p.length * block;
  const bool split = work > 2 * grain && tasks < num_threads() && !in_parallel_region();
  const int64_t splits = split ? std::min(most_splits, work / grain) : 1;
  const int64_t pieces = split ? std::min(n, (splits + rows - 1) / rows) : 1;
  const int64_t least = std::max<int64_t>(1, grain / std::max<int64_t>(work, 1));
  if (!split && !p.columns) {
    parallel_for(0, tasks, least, [&](int64_t lo, int64_t hi) { fold_rows(f, p, x, lo, hi); });
    return;
  }
  const reduce_detail::Task<F> task(f, p, x, pieces);
  if (!split) {
    parallel_for(0, tasks, least, [&](int64_t lo, int64_t hi) {
      Acc acc[column_block];
      for (int64_t t = lo; t < hi; ++t) {
        task.fold(t, 0, rows, acc);
        task.finish(t, acc);
      }
    });
    return;
  }
  const int64_t units = rows * pieces;
  std::vector<Acc> partial(static_cast<size_t>(splits * block));
  for (int64_t t = 0; t < tasks; ++t) {
    parallel_for(0, splits, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t s = lo; s < hi; ++s)
        task.fold(t, units * s / splits, units * (s + 1) / splits, &partial[s * block]);
    });
    for (int64_t s = 1; s < splits; ++s) task.merge(t, &partial[0], &partial[s * block]);
    task.finish(t, &partial[0]);
  }
}

}  // namespace cresset
