// The choosing families' CUDA kernels (indices, scans, sorts, ...) against the CPU's.
#include "core/ops/ctc.h"
#include "core/ops/distance.h"
#include "core/ops/grid_sample.h"
#include "core/ops/indexing.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/pad.h"
#include "core/ops/scan.h"
#include "core/ops/scatter.h"
#include "core/ops/search.h"
#include "core/ops/softmax.h"
#include "core/ops/sort.h"
#include "core/ops/vision.h"
#include "test/core/gpu_compare.h"

namespace cresset {
namespace {

TEST(CudaIndexing, Rows) {
  for (DType dtype : {DType::Float32, DType::Int8, DType::Complex128, DType::BFloat16})
    for (RowShape s : {RowShape{1, 30, 7}, {3, 11, 16}, {2, 50, 1}, {1, 5, 1024}})
      for (int64_t count : {0, 1, 40, 5000}) {
        Tensor self = random({s.outer, s.n, s.inner}, dtype);
        Tensor index = integers({count}, -1, s.n), src = random({s.outer, count, s.inner}, dtype);
        // In bfloat16 the CPU rounds after every addition, the GPU once: few additions agree.
        if (dtype == DType::BFloat16 && count > 40) continue;
        const double tolerance = dtype == DType::BFloat16 ? 0.3 : 1e-3;
        compare("rows", tolerance, [&](const Move& to, Device d) {
          Tensor out = like(src, d), sum = ops::clone(to(self), std::nullopt);
          launch("rows", d, &IndexingKernels::select_rows, to(self), to(index), out, s);
          launch("rows", d, &IndexingKernels::add_rows, sum, to(index), to(src), Scalar(2), s);
          Tensor written = ops::clone(to(self), std::nullopt);
          // Few writes are ordered on both devices: the last of equal indices stays.
          if (count <= 40)
            launch("rows", d, &IndexingKernels::write_rows, written, to(index), to(src), s);
          return TensorList{out, sum, written};
        });
      }
}

TEST(CudaIndexing, ChecksWhereNonzero) {
  Tensor x = random({37, 41}, DType::Int32), index = integers({100}, -9, 10);
  Tensor c = ops::to_dtype(integers({37, 1}, 0, 2), DType::Bool), b = random({41}, DType::Int32);
  compare("where", 0, [&](const Move& to, Device d) {
    Tensor out = like(x, d);
    launch("where", d, &IndexingKernels::where, to(c), ops::transpose(to(x), 0, 0), to(b), out);
    int64_t lo = 0, hi = 0;
    launch("range", d, &IndexingKernels::range, to(index), &lo, &hi);
    EXPECT_GE(lo, -9);
    EXPECT_LE(hi, 9);
    return TensorList{out, ops::nonzero(to(x)), ops::full(Dims{}, Scalar(lo), i64)};
  });
  Tensor big = ops::to_dtype(integers({3, 50000}, 0, 4), DType::Float64);
  compare("nonzero", 0, [&](const Move& to, Device) { return TensorList{ops::nonzero(to(big))}; });
}

TEST(CudaScatter, EveryOp) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::UInt8, DType::Float16,
                      DType::Complex64, DType::Bool})
    for (ScatterOp op : {ScatterOp::Sum, ScatterOp::Prod, ScatterOp::Amax, ScatterOp::Amin}) {
      if (is_complex(dtype) && op >= ScatterOp::Amax) continue;
      Tensor self = random({6, 9, 5}, dtype), index = integers({6, 4, 5}, 0, 9);
      Tensor src = random({6, 4, 5}, dtype);
      compare("scatter", 5 * tolerance_of(dtype), [&](const Move& to, Device d) {
        Tensor out = ops::clone(to(self), std::nullopt), taken = like(src, d);
        launch("scatter", d, &ScatterKernels::scatter, out, int64_t{1}, to(index), to(src), op);
        launch("gather", d, &ScatterKernels::gather, ops::transpose(to(self), 0, 0), int64_t{1},
               to(index), taken);
        return TensorList{out, taken};
      });
    }
}

TEST(CudaScan, LanesAndPieces) {
  for (DType dtype : {DType::Float32, DType::Int64, DType::Complex64, DType::Int8})
    for (const Dims& sizes : {Dims{1, 1, 1}, {3, 7, 5}, {2, 1000, 3}, {1, 100000, 1}, {5, 2049, 1}})
      for (bool reverse : {false, true}) {
        Tensor x = random(sizes, dtype), b = ops::to_dtype(ops::mul(random(sizes), 0.3), dtype);
        compare("scan", 2e-4, [&](const Move& to, Device d) {
          Tensor sum = like(x, d), r = like(x, d);
          launch("scan", d, &ScanKernels::scan, ScanOp::Sum, to(x), int64_t{1}, reverse, sum);
          launch("scan", d, &ScanKernels::recurrence, to(x), to(b), int64_t{1}, reverse, r);
          TensorList out{sum, r};
          if (!x.is_complex()) {
            Tensor v = like(x, d), at = empty(sizes, {DType::Int64, d});
            launch("scan", d, &ScanKernels::extreme, to(x), int64_t{1}, !reverse, v, at);
            out.insert(out.end(), {v, at});
          }
          if (!is_integral(dtype, true)) {
            Tensor l = like(x, d);
            launch("scan", d, &ScanKernels::scan, ScanOp::LogSumExp, to(x), int64_t{1}, reverse, l);
            out.push_back(l);
          }
          return out;
        });
      }
}

TEST(CudaSort, RowsOfAnyLength) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Int8, DType::Float16})
    for (auto [rows, n] :
         {std::array<int64_t, 2>{1, 1}, {5, 37}, {3, 2048}, {2, 5000}, {1, 70001}}) {
      Tensor x = random({rows, n}, dtype);
      compare("sort", 0, [&](const Move& to, Device d) {
        TensorList out;
        for (bool descending : {false, true}) {
          Tensor v = like(x, d), at = empty(x.sizes(), {DType::Int64, d});
          launch("sort", d, &SortKernels::sort, to(x), descending, true, v, at);
          out.insert(out.end(), {v, at});
        }
        const Dims one{rows};
        for (Selection rule : {Selection::Rank, Selection::Median}) {
          Tensor v = empty(one, {dtype, d}), at = empty(one, {DType::Int64, d});
          launch("select", d, &SortKernels::select, to(x), rule, n / 3, v, at);
          out.push_back(v);
        }
        Tensor v = empty(one, {dtype, d}), at = empty(one, {DType::Int64, d});
        launch("mode", d, &SortKernels::mode, to(x), v, at);
        out.push_back(v);
        Tensor top = empty(Dims{rows, n / 2}, {dtype, d});
        launch("topk", d, &SortKernels::topk, to(x), true, top,
               empty(top.sizes(), {DType::Int64, d}));
        out.push_back(top);
        return out;
      });
    }
}

TEST(CudaSearch, BoundsSetsHistograms) {
  Tensor values = random({300}), edges = std::get<0>(ops::sort(random({40}), 0, false, true));
  Tensor x = ops::to_dtype(integers({500, 2}, 0, 6), DType::Int32);
  compare("search", 0, [&](const Move& to, Device d) {
    Tensor at = empty(Dims{300}, {DType::Int64, d}), in = empty(Dims{1000}, {DType::Bool, d});
    launch("s", d, &SearchKernels::searchsorted, to(edges), to(values), Tensor(), true, at);
    Tensor flat = ops::reshape(to(x), Dims{-1});
    launch("s", d, &SearchKernels::isin, flat, ops::narrow(flat, 0, 0, 2), false, in);
    UniqueRows rows, runs;
    launch("s", d, &SearchKernels::unique, to(x), false, &rows);
    launch("s", d, &SearchKernels::unique, to(x), true, &runs);
    Tensor counts = ops::zeros(Dims{10}, {DType::Float32, d});
    launch("s", d, &SearchKernels::histc, to(values), -2.0, 2.0, counts);
    TensorList out{at, in, counts};
    for (const UniqueRows* u : {&rows, &runs})
      for (const auto* list : {&u->first, &u->inverse, &u->counts}) {
        Tensor t = empty(Dims{static_cast<int64_t>(list->size())}, i64);
        std::copy(list->begin(), list->end(), t.data<int64_t>());
        out.push_back(t);
      }
    return out;
  });
}

TEST(CudaPad, TablesBothWays) {
  PadPlan plan;
  plan.source = {{0, 1, 2}, {-1, 0, 1, 2, 3, -1, -1}, {2, 1, 0, 1, 2, 3, 4, 3}};
  Tensor x = random({3, 4, 5}), g = random({3, 7, 8});
  const float value = 1.5f;
  compare("pad", 1e-5, [&](const Move& to, Device d) {
    Tensor y = like(g, d), gx = ops::zeros(x.sizes(), {DType::Float32, d});
    launch("pad", d, &PadKernels::pad, to(x), y, plan, static_cast<const void*>(&value));
    launch("pad", d, &PadKernels::pad_backward, to(g), gx, plan);
    return TensorList{y, gx};
  });
}

TEST(CudaDistance, PairsAndBatches) {
  for (double p : {0.0, 1.0, 2.0, 3.5, HUGE_VAL})
    for (bool pairs : {false, true}) {
      Tensor a = random({pairs ? 1 : 2, 9, 13}), b = pairs ? a : random({2, 7, 13});
      const Dims out = pairs ? Dims{36} : Dims{2, 9, 7};
      Tensor g = random(out);
      compare("distance", 1e-4, [&](const Move& to, Device d) {
        Tensor x = to(a), z = pairs ? x : to(b), y = empty(out, {DType::Float32, d});
        DistanceCall c{p, pairs, pairs ? 1 : 2, 9, pairs ? 9 : 7, 13, &x, &z, &y};
        launch("distance", d, &DistanceKernels::forward, c);
        Tensor da = ops::zeros(x.sizes(), options_of(x)), db;
        if (!pairs) db = ops::zeros(z.sizes(), options_of(z));
        launch("distance", d, &DistanceKernels::backward, c, to(g), da, db);
        return pairs ? TensorList{y, da} : TensorList{y, da, db};
      });
    }
}

TEST(CudaVision, ResamplingAndGrids) {
  ResamplingMatrix m{.inputs = 4,
                     .outputs = 3,
                     .first = {0, 2, 3, 5},
                     .index = {0, 1, 2, 2, 3},
                     .weight = {0.25, 0.75, 1, 0.5, 0.5}};
  Tensor x = random({5, 4, 6}), y = random({5, 3, 6});
  compare("resample", 1e-6, [&](const Move& to, Device d) {
    Tensor forward = like(y, d), backward = like(x, d);
    launch("r", d, &VisionKernels::resample, m, false, int64_t{6}, to(x), forward);
    launch("r", d, &VisionKernels::resample, m, true, int64_t{6}, to(y), backward);
    return TensorList{forward, backward};
  });
  for (GridMode mode : {GridMode::bilinear, GridMode::nearest, GridMode::bicubic})
    for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (bool align : {false, true}) {
        Tensor image = random({2, 3, 7, 9}, DType::Float64),
               grid = random({2, 4, 5, 2}, DType::Float64);
        Tensor g = random({2, 3, 4, 5}, DType::Float64);
        compare("grid_sample", 1e-10, [&](const Move& to, Device d) {
          Tensor im = to(image), at = to(grid), out = like(g, d);
          const GridCall call{mode, padding, align, &im, &at};
          launch("grid", d, &GridKernels::forward, call, out);
          Tensor dx = ops::zeros(image.sizes(), {DType::Float64, d}), dgrid = like(grid, d);
          launch("grid", d, &GridKernels::backward, call, to(g), dx, dgrid);
          return TensorList{out, dx, dgrid};
        });
      }
}

TEST(CudaCtc, ForwardBackward) {
  const int64_t inputs[] = {12, 9, 5}, targets[] = {4, 3, 0};
  GradMode off(false);
  Tensor x = ops::log_softmax(random({12, 3, 6}, DType::Float64), 2, std::nullopt);
  Tensor labels = integers({3, 4}, 1, 6), g = random({3}, DType::Float64);
  compare("ctc", 1e-9, [&](const Move& to, Device d) {
    const Options o{DType::Float64, d};
    Tensor scores = to(x), list = to(labels), alpha = ops::zeros(Dims{3, 12, 9}, o);
    Tensor loss = empty(Dims{3}, o), dx = ops::zeros(x.sizes(), o);
    const CtcCall c{&scores, &list, &alpha, &loss, inputs, targets, 0, false};
    launch("ctc", d, &CtcKernels::forward, c);
    launch("ctc", d, &CtcKernels::backward, c, to(g), dx);
    return TensorList{loss, dx};
  });
}

TEST(CudaLinalg, Factorizations) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Complex64, DType::Complex128})
    for (auto [m, n] : {std::array<int64_t, 2>{1, 1}, {5, 5}, {33, 33}, {9, 4}, {4, 9}}) {
      Tensor a = random({3, m, n}, dtype);
      const int64_t k = std::min(m, n);
      const double tolerance = 500 * tolerance_of(dtype);
      compare("linalg", tolerance, [&](const Move& to, Device d) {
        const Options ints{DType::Int32, d}, same{dtype, d};
        Tensor lu = ops::clone(to(a), std::nullopt), pivots = empty(Dims{3, k}, ints);
        Tensor info = empty(Dims{3}, ints), order = empty(Dims{3, m}, {DType::Int64, d});
        launch("lu", d, &LinalgKernels::lu, lu, pivots, info, true);
        launch("lu", d, &LinalgKernels::row_order, pivots, order);
        Tensor qr = ops::clone(to(a), std::nullopt), tau = empty(Dims{3, k}, same);
        Tensor q = empty(Dims{3, m, k}, same);
        launch("qr", d, &LinalgKernels::qr, qr, tau);
        launch("qr", d, &LinalgKernels::reflect, qr, tau, q);
        TensorList out{lu, pivots, info, order, qr, tau, q};
        if (m != n) return out;
        Tensor b = ops::clone(to(a), std::nullopt);
        Tensor gram =
            ops::add(ops::matmul(to(a), ops::transpose(ops::conj(to(a)), 1, 2)), identity(m, same));
        Tensor chol = ops::contiguous(gram), fine = empty(Dims{3}, ints);
        launch("chol", d, &LinalgKernels::cholesky, chol, fine);
        launch("solve", d, &LinalgKernels::solve_triangular, chol, b, false, false);
        const Options real{to_real(dtype), d};
        Tensor det = empty(Dims{3}, same), sign = empty(Dims{3}, same), logs = empty(Dims{3}, real);
        launch("det", d, &LinalgKernels::determinant, lu, pivots, det, sign, logs);
        out.insert(out.end(), {chol, fine, b, sign, logs});
        return out;
      });
    }
}

}  // namespace
}  // namespace cresset
