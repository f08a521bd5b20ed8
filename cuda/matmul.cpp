// Matrix products by cuBLASLt, with plans kept per shape.
#include "core/ops/matmul.h"

#include <bit>
#include <cstring>
#include <memory>

#include "core/ops/ops.h"
#include "core/tensor/math_mode.h"
#include "cuda/launch.h"
#include "cuda/libraries.h"
#include "cuda/matmul.h"

namespace cresset::cuda {
namespace {

// Note [Rows for columns]
// cuBLASLt thinks in columns, tensors lie in rows: the transposed product C^T = B^T A^T is asked
// for, so that each row-major matrix is its own column-major transpose. What is called first here
// is b, second is a; rows of the library's result are our columns, so its bias is one per column.

/// Everything a plan depends on. Words only: it is hashed and compared as memory.
struct Problem {
  int64_t m, n, k, batch;  ///< of our c [batch, m, n]
  int64_t ld_a, ld_b, ld_c, stride_a, stride_b, stride_c;
  uint8_t dtype, by_columns_a, by_columns_b, bias;
  uint8_t align_a, align_b, align_c, mode;  ///< alignments as powers of two; mode = MathMode's bits

  uint64_t hash() const {
    uint64_t words[sizeof(Problem) / 8], h = 0x9e3779b97f4a7c15u;
    std::memcpy(words, this, sizeof(words));
    for (uint64_t w : words) h = std::rotl(h ^ w, 27) * 0x9fb21c651e98df25u;
    return h ^ (h >> 32);
  }
  bool operator==(const Problem& o) const { return std::memcmp(this, &o, sizeof(*this)) == 0; }
};
static_assert(sizeof(Problem) == 11 * 8);

struct Plan {
  Problem problem;
  cublasLtMatmulDescOpaque_t op;
  cublasLtMatrixLayoutOpaque_t a, b, c;
  cublasLtMatmulAlgo_t algo;
  size_t workspace;
};

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

Types types_of(DType dtype, bool tf32) {
  const auto f32 = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  switch (dtype) {
    case DType::Float16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::BFloat16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::Float32: return {CUDA_R_32F, CUDA_R_32F, f32};
    case DType::Float64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::Complex64: return {CUDA_C_32F, CUDA_C_32F, f32};
    case DType::Complex128: return {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
    default: fail(ErrorKind::DType, "matmul: no kernel on cuda for dtype ", dtype);
  }
}

constexpr size_t most_workspace = size_t{32} << 20;

template <class T>
void set(cublasLtMatmulDesc_t op, cublasLtMatmulDescAttributes_t what, const T& value) {
  LIBRARY_CHECK("cuBLASLt", cublasLtMatmulDescSetAttribute(op, what, &value, sizeof(value)));
}
template <class T>
void prefer(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
            const T& value) {
  LIBRARY_CHECK("cuBLASLt", cublasLtMatmulPreferenceSetAttribute(p, what, &value, sizeof(value)));
}

void init_layout(cublasLtMatrixLayoutOpaque_t& l, cudaDataType_t type, int64_t rows, int64_t cols,
                 int64_t ld, int64_t batch, int64_t stride) {
  LIBRARY_CHECK("cuBLASLt", cublasLtMatrixLayoutInit(&l, type, static_cast<uint64_t>(rows),
                                                     static_cast<uint64_t>(cols), ld));
  const int32_t count = static_cast<int32_t>(batch);
  LIBRARY_CHECK("cuBLASLt", cublasLtMatrixLayoutSetAttribute(&l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                             &count, sizeof(count)));
  LIBRARY_CHECK("cuBLASLt",
                cublasLtMatrixLayoutSetAttribute(&l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &stride, sizeof(stride)));
}

constexpr uint8_t mode_tf32 = 1, mode_reduced = 2;

void choose_algorithm(Plan& plan) {
  const Problem& p = plan.problem;
  cublasLtMatmulPreferenceOpaque_t preference;
  LIBRARY_CHECK("cuBLASLt", cublasLtMatmulPreferenceInit(&preference));
  prefer(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
  prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{1} << p.align_b);
  prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t{1} << p.align_a);
  prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t{1} << p.align_c);
  prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t{1} << p.align_c);
  if (!(p.mode & mode_reduced)) {
    const uint32_t exact = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_NONE;
    prefer(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact);
  }
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  LIBRARY_CHECK("cuBLASLt",
                cublasLtMatmulAlgoGetHeuristic(blas_lt(), &plan.op, &plan.b, &plan.a, &plan.c,
                                               &plan.c, &preference, 1, &found, &count));
  CHECK(count > 0, NotImplemented, "matmul: cuBLASLt has no algorithm for [", p.batch, ", ", p.m,
        ", ", p.k, "] by [", p.batch, ", ", p.k, ", ", p.n, "]");
  plan.algo = found.algo;
  plan.workspace = found.workspaceSize;
}

void make_plan(Plan& plan, const Problem& p) {
  plan.problem = p;
  const Types t = types_of(static_cast<DType>(p.dtype), p.mode & mode_tf32);
  LIBRARY_CHECK("cuBLASLt", cublasLtMatmulDescInit(&plan.op, t.compute, t.scale));
  set(&plan.op, CUBLASLT_MATMUL_DESC_TRANSA, p.by_columns_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(&plan.op, CUBLASLT_MATMUL_DESC_TRANSB, p.by_columns_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias) set(&plan.op, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  init_layout(plan.b, t.data, p.by_columns_b ? p.k : p.n, p.by_columns_b ? p.n : p.k, p.ld_b,
              p.batch, p.stride_b);
  init_layout(plan.a, t.data, p.by_columns_a ? p.m : p.k, p.by_columns_a ? p.k : p.m, p.ld_a,
              p.batch, p.stride_a);
  init_layout(plan.c, t.data, p.n, p.m, p.ld_c, p.batch, p.stride_c);
  choose_algorithm(plan);
}

/// Plans of one thread and device: an open hash table over a fixed store, emptied when full.
class PlanCache {
 public:
  Plan& get(const Problem& p) {
    for (size_t at = p.hash() % slots;; at = (at + 1) % slots) {
      const uint16_t n = table_[at];
      if (n != 0 && plans_[n - 1].problem == p) return plans_[n - 1];
      if (n == 0) return add(at, p);
    }
  }

 private:
  static constexpr size_t slots = 4096, most = 2048;

  Plan& add(size_t at, const Problem& p) {
    Plan plan;
    make_plan(plan, p);
    if (count_ == most) {
      std::memset(table_, 0, sizeof(table_));
      count_ = 0;
      at = p.hash() % slots;
    }
    plans_[count_] = plan;
    table_[at] = ++count_;
    return plans_[count_ - 1];
  }

  uint16_t table_[slots] = {};
  uint16_t count_ = 0;
  Plan plans_[most];
};

PlanCache& plan_cache(Device device) {
  thread_local std::vector<std::unique_ptr<PlanCache>> by_device;
  const size_t at = static_cast<size_t>(device.index);
  if (at >= by_device.size()) by_device.resize(at + 1);
  if (!by_device[at]) by_device[at] = std::make_unique<PlanCache>();
  return *by_device[at];
}

/// A factor as the library can read it: rows or columns one after another.
struct Factor {
  Tensor t;
  int64_t ld = 1, stride = 0;
  bool by_columns = false;
};

bool take_layout(Factor& f) {
  const int64_t rows = f.t.size(-2), cols = f.t.size(-1), s1 = f.t.stride(-2), s2 = f.t.stride(-1);
  f.stride = batch_count(f.t) > 1 ? batch_stride(f.t) : 0;
  f.by_columns = false;
  if ((s2 == 1 || cols == 1) && (s1 >= cols || rows == 1)) {
    f.ld = rows == 1 ? cols : s1;
    return true;
  }
  f.by_columns = true;
  f.ld = cols == 1 ? rows : s2;
  return (s1 == 1 || rows == 1) && (s2 >= rows || cols == 1);
}

Factor factor(const Tensor& t) {
  Factor f{t};
  if (take_layout(f)) return f;
  f.t = ops::contiguous(t);
  take_layout(f);
  return f;
}

uint8_t alignment(const Tensor& t, int64_t stride, int64_t ld) {
  const uint64_t size = itemsize(t.dtype());
  const uint64_t bits = reinterpret_cast<uint64_t>(data_of(t)) |
                        static_cast<uint64_t>(stride) * size | static_cast<uint64_t>(ld) * size;
  return static_cast<uint8_t>(std::min(std::countr_zero(bits | 256), 8));
}

uint8_t mode_of(DType dtype) {
  const MathMode& mode = math_mode();
  if (dtype == DType::Float32 || dtype == DType::Complex64)
    return mode_reduced | (mode.matmul_tf32 ? mode_tf32 : 0);
  if (dtype == DType::Float16) return mode.fp16_reduced_reduction ? mode_reduced : 0;
  if (dtype == DType::BFloat16) return mode.bf16_reduced_reduction ? mode_reduced : 0;
  return mode_reduced;
}

Problem describe(const Factor& a, const Factor& b, const Tensor& c, bool bias) {
  Problem p{.m = c.size(-2),
            .n = c.size(-1),
            .k = a.t.size(-1),
            .batch = batch_count(c),
            .ld_a = a.ld,
            .ld_b = b.ld,
            .ld_c = c.size(-2) == 1 ? c.size(-1) : c.stride(-2),
            .stride_a = a.stride,
            .stride_b = b.stride,
            .stride_c = batch_count(c) > 1 ? batch_stride(c) : 0,
            .dtype = static_cast<uint8_t>(c.dtype()),
            .by_columns_a = a.by_columns,
            .by_columns_b = b.by_columns,
            .bias = bias,
            .align_a = alignment(a.t, a.stride, a.ld),
            .align_b = alignment(b.t, b.stride, b.ld),
            .align_c = 0,
            .mode = mode_of(c.dtype())};
  p.align_c = alignment(c, p.stride_c, p.ld_c);
  // One b for a batch of neighbouring rows is one product.
  const bool rows_follow = !a.by_columns && a.stride == p.m * a.ld && p.stride_c == p.m * p.ld_c;
  if (p.batch > 1 && b.stride == 0 && rows_follow) {
    p.m *= p.batch;
    p.batch = 1;
    p.stride_a = p.stride_b = p.stride_c = 0;
  }
  return p;
}

/// alpha or beta in the type that the library scales by.
struct Factors {
  alignas(16) char bytes[16];
  Factors(DType dtype, const Scalar& s) {
    const std::complex<double> z = s.to_complex();
    const std::complex<float> f(z);
    const float real = f.real();
    if (dtype == DType::Float64 || dtype == DType::Complex128)
      std::memcpy(bytes, &z, sizeof(z));
    else if (dtype == DType::Complex64)
      std::memcpy(bytes, &f, sizeof(f));
    else
      std::memcpy(bytes, &real, sizeof(real));
  }
};

void product(const Tensor& a, const Tensor& b, const Tensor* bias, const Tensor& c,
             const Scalar& alpha, const Scalar& beta) {
  const Factor fa = factor(a), fb = factor(b);
  Plan& plan = plan_cache(c.device()).get(describe(fa, fb, c, bias != nullptr));
  if (bias)
    set(&plan.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(data_of(*bias)));
  Tensor workspace;
  if (plan.workspace)
    workspace = empty(Dims{static_cast<int64_t>(plan.workspace)}, {DType::UInt8, c.device()});
  const Factors x(c.dtype(), alpha), y(c.dtype(), beta);
  LIBRARY_CHECK("cuBLASLt",
                cublasLtMatmul(blas_lt(), &plan.op, x.bytes, data_of(fb.t), &plan.b, data_of(fa.t),
                               &plan.a, y.bytes, data_of(c), &plan.c, data_of(c), &plan.c,
                               &plan.algo, plan.workspace ? data_of(workspace) : nullptr,
                               plan.workspace, current_stream()));
}

/// Calling cuBLASLt takes two to five times as long as launching a kernel. These are the products
/// of which a plain kernel makes as short work as the library's do (on an H200; of half types they
/// do better).
bool is_small(const Tensor& a, const Tensor& c) {
  const bool plain = c.dtype() == DType::Float32 || c.dtype() == DType::Float64;
  const int64_t outputs = c.numel(), terms = a.size(-1);
  return plain && ((outputs <= 128 * 128 && terms <= 64) || (outputs <= 2048 && terms <= 256));
}

void bmm(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& alpha,
         const Scalar& beta) {
  if (c.numel() == 0) return;
  if (a.size(-1) == 0) return scale_matrices(c, beta);
  if (is_small(a, c) || is_integral(c.dtype(), true))
    return own_product(a, b, nullptr, c, alpha, beta);
  product(a, b, nullptr, c, alpha, beta);
}

// The library's bias needs products of floats that have an inner dimension.
bool biased(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c) {
  if (!c.is_floating() || c.numel() == 0 || a.size(-1) == 0 || bias.stride(0) != 1) return false;
  if (is_small(a, c))
    own_product(a, b, &bias, c, 1, 0);
  else if (c.dtype() != DType::Float64)
    product(a, b, &bias, c, 1, 0);
  else
    return false;
  return true;
}

}  // namespace

template <> const MatmulKernels& cuda_table<MatmulKernels>() {
  static constexpr MatmulKernels table = {.bmm = bmm, .biased = biased};
  return table;
}

}  // namespace cresset::cuda
