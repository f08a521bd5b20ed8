// float matrix products by oneDNN's sgemm, for the layouts that BLAS knows.
#if CRESSET_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "core/cpu/gemm.h"
#include "core/cpu/parallel.h"

namespace cresset {
namespace {

/// A matrix as BLAS describes it: stored by rows, or transposed, with a leading dimension.
struct BlasLayout {
  char transpose;
  int64_t leading;
  bool fits;
};

BlasLayout blas_layout(MatrixView<const float> x) {
  // The stride along an extent of one element is never used.
  const bool by_rows = x.col_stride == 1 || x.cols == 1;
  const bool by_columns = x.row_stride == 1 || x.rows == 1;
  const int64_t row = x.rows == 1 ? std::max<int64_t>(x.cols, 1) : x.row_stride;
  const int64_t column = x.cols == 1 ? std::max<int64_t>(x.rows, 1) : x.col_stride;
  if (by_rows && row >= std::max<int64_t>(1, x.cols)) return {'N', row, true};
  if (by_columns && column >= std::max<int64_t>(1, x.rows)) return {'T', column, true};
  return {'N', 0, false};
}

}  // namespace

bool gemm_onednn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
                 float alpha, float beta) {
  const BlasLayout la = blas_layout(a), lb = blas_layout(b);
  const BlasLayout lc = blas_layout({c.data, c.rows, c.cols, c.row_stride, c.col_stride});
  if (!la.fits || !lb.fits || !lc.fits || lc.transpose != 'N') return false;
  sync_openmp_threads();
  const dnnl_status_t status =
      dnnl_sgemm(la.transpose, lb.transpose, c.rows, c.cols, a.cols, alpha, a.data, la.leading,
                 b.data, lb.leading, beta, c.data, lc.leading);
  return status == dnnl_success;
}

}  // namespace cresset
#endif
