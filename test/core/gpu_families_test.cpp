// The computing families' CUDA kernels against the CPU's on random inputs of awkward sizes.
#include "core/ops/conv.h"
#include "core/ops/embedding.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/normalization.h"
#include "core/ops/optim.h"
#include "core/ops/pool.h"
#include "core/ops/softmax.h"
#include "test/core/gpu_compare.h"

namespace cresset {
namespace {

TEST(CudaMatmul, LayoutsAndTypes) {
  const DType types[] = {DType::Float32,   DType::Float64,    DType::Int64, DType::Int8,
                         DType::Complex64, DType::Complex128, DType::Int32};
  for (DType dtype : types)
    for (auto [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                           {7, 5, 3},
                           {64, 64, 64},
                           {33, 129, 65},
                           {1, 100, 17},
                           {50, 1, 20},
                           {3, 0, 4}})
      for (int layout = 0; layout < 4; ++layout) {
        Tensor a = layout & 1 ? ops::transpose(random({k, m}, dtype), 0, 1) : random({m, k}, dtype);
        Tensor b = layout & 2 ? ops::transpose(random({n, k}, dtype), 0, 1) : random({k, n}, dtype);
        compare("mm", 4 * tolerance_of(dtype) * std::sqrt(1.0 + k),
                [&](const Move& to, Device) { return TensorList{ops::mm(to(a), to(b))}; });
      }
}

TEST(CudaMatmul, BatchesAndBias) {
  // Few terms are summed without the library.
  for (int64_t k : {9, 90})
    for (DType dtype : {DType::Float32, DType::Float64}) {
      Tensor a = random({5, 7, k}, dtype), b = random({5, k, 4}, dtype);
      Tensor shared = random({k, 4}, dtype), bias = random({4}, dtype);
      compare("bmm", 10 * tolerance_of(dtype), [&](const Move& to, Device) {
        return TensorList{ops::bmm(to(a), to(b)),
                          ops::matmul(to(a), to(shared)),
                          ops::bmm(ops::transpose(to(b), 1, 2), ops::transpose(to(a), 1, 2)),
                          ops::linear(to(a), ops::transpose(to(shared), 0, 1), to(bias)),
                          ops::addmm(to(bias), ops::select(to(a), 0, 1), to(shared), 1, 1),
                          ops::addmm(to(bias), ops::select(to(a), 0, 1), to(shared), 0.5, 2)};
      });
    }
  for (DType dtype : {DType::Float16, DType::BFloat16}) {
    Tensor x = random({33, 64}, dtype), w = random({48, 64}, dtype), c = random({48}, dtype);
    compare("linear 16 bits", 8 * tolerance_of(dtype), [&](const Move& to, Device) {
      return TensorList{ops::linear(to(x), to(w), to(c)), ops::linear(to(x), to(w), std::nullopt)};
    });
  }
}

TEST(CudaConv, ForwardAndGradients) {
  const ConvNdShape cases[] = {
      {2, 3, 8, 1, {1, 9, 11}, {1, 3, 3}, {1, 9, 11}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
      {3, 4, 6, 2, {1, 8, 8}, {1, 3, 2}, {1, 3, 4}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
      {2, 2, 4, 1, {1, 7, 7}, {1, 2, 4}, {1, 7, 7}, {1, 1, 1}, {0, 0, 1}, {0, 1, 2}, {1, 1, 1}},
      {1, 2, 2, 2, {1, 1, 20}, {1, 1, 5}, {1, 1, 12}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 2}},
      {2, 2, 3, 1, {5, 6, 7}, {2, 3, 3}, {4, 4, 5}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}}};
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Complex64})
    for (const ConvNdShape& s : cases) {
      const bool deep = s.kernel[0] > 1;
      auto sizes = [&](int64_t a, int64_t b, const ConvNdShape::Extent& e) {
        return deep ? Dims{a, b, e[0], e[1], e[2]} : Dims{a, b, e[1], e[2]};
      };
      Tensor x = random(sizes(s.n, s.c_in, s.in), dtype);
      Tensor w = random(sizes(s.c_out, s.c_in / s.groups, s.kernel), dtype);
      Tensor b = random({s.c_out}, dtype), g = random(sizes(s.n, s.c_out, s.out), dtype);
      // TF32 products are the default of convolutions.
      const double tolerance = dtype == DType::Float32 ? 2e-2 : 1e-4;
      compare("conv", tolerance, [&](const Move& to, Device d) {
        Tensor y = like(g, d), gx = like(x, d), gw = like(w, d), gb = like(b, d);
        launch("conv", d, &ConvKernels::forward, s, to(x), to(w), to(b), y);
        launch("conv", d, &ConvKernels::backward_input, s, to(g), to(w), gx);
        launch("conv", d, &ConvKernels::backward_weight, s, to(x), to(g), gw, gb);
        return TensorList{y, gx, gw, gb};
      });
    }
}

TEST(CudaSoftmax, RowsAndColumns) {
  for (DType dtype : float_types)
    for (const Dims& sizes : {Dims{3, 1},
                              {5, 33},
                              {4, 200},
                              {7, 1000},
                              {3, 1027},
                              {2, 70000},
                              {2, 4096},
                              {3, 5, 7},
                              {2, 300, 40},
                              {0, 4},
                              {4, 0}})
      for (int64_t dim : {int64_t{0}, int64_t{1}})
        for (bool logarithm : {false, true}) {
          Tensor x = random(sizes, dtype), g = random(sizes, dtype);
          compare("softmax", tolerance_of(dtype), [&](const Move& to, Device d) {
            Tensor y = like(x, d), dx = like(x, d);
            launch("softmax", d, &SoftmaxKernels::forward, logarithm, to(x), dim, y);
            launch("softmax", d, &SoftmaxKernels::backward, logarithm, to(g), y, dim, dx);
            return TensorList{y, dx};
          });
        }
}

TEST(CudaNormalization, RowsAndChannels) {
  for (DType dtype : float_types)
    for (auto [rows, n] :
         {std::array<int64_t, 2>{3, 1}, {5, 33}, {70, 768}, {4, 1025}, {3, 4096}, {2, 60001}}) {
      Tensor x = random({rows, n}, dtype), w = random({n}, dtype), b = random({n}, dtype),
             g = random({rows, n}, dtype);
      compare("layer_norm", 10 * tolerance_of(dtype), [&](const Move& to, Device d) {
        const Options o{dtype, d};
        Tensor y = like(x, d), mean = empty(Dims{rows}, o), rstd = empty(Dims{rows}, o);
        Tensor dx = like(x, d), dw = like(w, d), db = like(b, d);
        launch("layer_norm", d, &NormalizationKernels::layer_norm, to(x), to(w), to(b), 1e-3, y,
               mean, rstd);
        launch("layer_norm", d, &NormalizationKernels::layer_norm_backward, to(g), to(x), mean,
               rstd, to(w), dx, dw, db);
        return TensorList{y, mean, rstd, dx, dw, db};
      });
    }
  for (const Dims& sizes : {Dims{4, 3, 5}, {64, 10, 1}, {8, 16, 64}, {2, 5, 4096}, {0, 3, 2}}) {
    Tensor x = random(sizes), g = random(sizes);
    const Dims channels{sizes[1]};
    Tensor m = random(channels), a = random(channels), b = random(channels), e = random(channels);
    compare("channels", 2e-4, [&](const Move& to, Device d) {
      Tensor y = like(x, d), dx = like(x, d), sums = like(m, d), dots = like(m, d);
      launch("n", d, &NormalizationKernels::channel_affine, to(x), to(m), to(a), to(b), y);
      launch("n", d, &NormalizationKernels::channel_affine2, to(g), to(x), to(m), to(a), to(b),
             to(e), dx);
      launch("n", d, &NormalizationKernels::channel_sums, to(g), to(x), to(m), sums, dots);
      return TensorList{y, dx, sums, dots};
    });
  }
}

TEST(CudaLosses, Classes) {
  for (DType dtype : float_types)
    for (auto [n, c, s] : {std::array<int64_t, 3>{64, 10, 1},
                           {1, 1, 1},
                           {300, 5, 1},
                           {6, 5000, 1},
                           {4, 7, 33},
                           {3, 40, 1}})
      for (Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum})
        for (int kind = 0; kind < 4; ++kind) {
          ClassLoss in;
          in.n = n;
          in.classes = c;
          in.inner = s;
          in.scores = random({n, c, s}, dtype);
          in.target = integers({n, s}, 0, c);
          if (n > 2) in.target.data<int64_t>()[1] = in.ignore_index;
          if (kind & 1) in.weight = ops::row(Row::abs, {random({c}, dtype)});
          in.smoothing = kind & 2 ? 0.1 : 0;
          const Dims out = reduction == Reduction::none ? Dims{n, s} : Dims{};
          Tensor g = random(out, dtype);
          compare("class_loss", 20 * tolerance_of(dtype), [&](const Move& to, Device d) {
            ClassLoss at = in;
            at.scores = to(in.scores);
            at.target = to(in.target);
            at.weight = to(in.weight);
            const Options o{dtype, d};
            ClassLossOut r{reduction, empty(Dims{n * s}, o), empty(out, o), {}};
            if (reduction == Reduction::mean) r.total = empty(Dims{}, o);
            Tensor dx = like(in.scores, d);
            launch("loss", d, &LossKernels::class_loss, at, r);
            launch("loss", d, &LossKernels::class_loss_backward, at, r, to(g), dx);
            return TensorList{r.loss, r.lse, dx};
          });
        }
}

TEST(CudaLosses, Differences) {
  for (int64_t n : {1, 1000, 100003})
    for (Difference kind :
         {Difference::squared, Difference::absolute, Difference::smooth_l1, Difference::huber})
      for (Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
        Tensor x = random({n}), t = random({n});
        const Dims out = reduction == Reduction::none ? Dims{n} : Dims{};
        Tensor g = random(out);
        compare("difference", 1e-4, [&](const Move& to, Device d) {
          Tensor loss = empty(out, {DType::Float32, d}), dx = like(x, d);
          launch("loss", d, &LossKernels::difference, kind, 0.7, reduction, to(x), to(t), loss);
          launch("loss", d, &LossKernels::difference_backward, kind, 0.7, reduction, to(x), to(t),
                 to(g), dx);
          return TensorList{loss, dx};
        });
      }
}

TEST(CudaOptim, ManyTensors) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16})
    for (bool amsgrad : {false, true}) {
      TensorList params, grads, states;
      for (int64_t i = 0; i < 40; ++i) {
        params.push_back(random({i * 77}, dtype));
        grads.push_back(random({i * 77}, dtype));
        for (int k = 0; k < 3; ++k) states.push_back(ops::row(Row::abs, {random({i * 77}, dtype)}));
      }
      compare("optim", 2 * tolerance_of(dtype), [&](const Move& to, Device d) {
        TensorList out;
        std::vector<UpdateSlot> slots;
        for (size_t i = 0; i < params.size(); ++i) {
          UpdateSlot slot{
              .dtype = dtype, .n = params[i].numel(), .param = nullptr, .grad = nullptr};
          out.push_back(ops::clone(to(params[i]), std::nullopt));
          slot.param = out.back().device_data();
          out.push_back(ops::clone(to(grads[i]), std::nullopt));
          slot.grad = out.back().device_data();
          for (size_t k = 0; k < 3; ++k) {
            out.push_back(ops::clone(to(states[3 * i + k]), std::nullopt));
            slot.state[k] = out.back().device_data();
          }
          slot.correction1 = 0.5;
          slot.correction2_sqrt = 0.25;
          slots.push_back(slot);
        }
        const AdamOptions adam{1e-2, 0.9, 0.99, 1e-4, 0.1, true, amsgrad, false};
        launch("Adam", d, &OptimKernels::adam, std::span<const UpdateSlot>(slots), adam);
        const SgdOptions sgd{1e-2, 0.9, 0.1, 0.1, true, false, false};
        launch("SGD", d, &OptimKernels::sgd, std::span<const UpdateSlot>(slots), sgd);
        return out;
      });
    }
}

TEST(CudaEmbedding, NormsAndBags) {
  Tensor w = random({20, 7}), index = integers({50}, 0, 20);
  Tensor bag = empty(Dims{50}, i64);
  for (int64_t i = 0; i < 50; ++i) bag.data<int64_t>()[i] = i < 45 ? i / 6 : -1;
  compare("embedding", 1e-5, [&](const Move& to, Device d) {
    Tensor table = ops::clone(to(w), std::nullopt);
    launch("embedding", d, &EmbeddingKernels::limit_norm, table, to(index), 1.5, 2.0);
    Tensor best = ops::full(Dims{8, 7}, Scalar(int64_t{-1}), {DType::Int64, d});
    launch("embedding", d, &EmbeddingKernels::bag_argmax, to(w), to(index), to(bag), best);
    return TensorList{table, best};
  });
}

PoolWindows windows_2d(int64_t planes, bool adaptive) {
  PoolWindows p;
  p.planes = planes;
  p.in = {1, 11, 13};
  if (adaptive) {
    p.out = {1, 4, 5};
    for (size_t d = 1; d < 3; ++d) p.axis[d] = {.in = p.in[d], .out = p.out[d], .adaptive = true};
    return p;
  }
  p.out = {1, 6, 5};
  p.axis[1] = {.in = 11, .out = 6, .kernel = 3, .stride = 2, .pad = 1};
  p.axis[2] = {.in = 13, .out = 5, .kernel = 4, .stride = 3, .pad = 2, .count_include_pad = false};
  return p;
}

TEST(CudaPool, AnyWindows) {
  for (bool adaptive : {false, true})
    for (DType dtype : {DType::Float32, DType::Float64, DType::Int64}) {
      const PoolWindows p = windows_2d(6, adaptive);
      Tensor x = random({6, 11, 13}, dtype), g = random({6, p.out[1], p.out[2]}, dtype);
      compare("pool", tolerance_of(dtype), [&](const Move& to, Device d) {
        Tensor y = like(g, d), at = empty(g.sizes(), {DType::Int64, d}), gx = like(x, d);
        launch("pool", d, &PoolKernels::max, p, to(x), y, at);
        launch("pool", d, &PoolKernels::scatter, int64_t{6}, to(g), at, gx);
        Tensor mean = like(g, d), spread = like(x, d);
        launch("pool", d, &PoolKernels::avg, p, to(x), mean);
        launch("pool", d, &PoolKernels::avg_backward, p, to(g), spread);
        return TensorList{y, at, gx, mean, spread};
      });
    }
}

// What a whole network does, through the operators: results and gradients on both devices.
TEST(CudaOperators, TrainingStep) {
  Tensor x = random({8, 3, 12, 12}), w = random({4, 3, 3, 3}), b = random({4});
  Tensor w2 = random({10, 4 * 25}), b2 = random({10}), target = integers({8}, 0, 10);
  auto step = [&](Device d) {
    TensorList leaves;
    for (const Tensor& t : {w, b, w2, b2}) {
      leaves.push_back(ops::clone(d.is_cpu() ? t : ops::on_device(t, d), std::nullopt));
      leaves.back().set_requires_grad(true);
    }
    Tensor in = ops::on_device(x, d), classes = ops::on_device(target, d);
    Tensor y = ops::conv2d(in, leaves[0], leaves[1], Dims{1}, Dims{0}, Dims{1}, 1);
    y = std::get<0>(ops::max_pool2d_with_indices(ops::row(Row::relu, {y}), Dims{2}, std::nullopt,
                                                 Dims{0}, Dims{1}, false));
    y = ops::linear(ops::reshape(y, Dims{8, -1}), leaves[2], leaves[3]);
    Tensor loss =
        ops::class_loss("cross_entropy", y, classes, Tensor(), ClassLoss(), Reduction::mean);
    TensorList grads = run_grad(std::span(&loss, 1), {}, leaves, {});
    grads.push_back(ops::detach(loss));
    return grads;
  };
  const TensorList want = step({}), got = step(gpu);
  for (size_t i = 0; i < want.size(); ++i) expect_close(want[i], got[i], 3e-2, "gradient");
}

}  // namespace
}  // namespace cresset
