// The SIMD part of pooling: one output row from padded, phase-split input rows.
#pragma once

#include <cstdint>

#include "core/cpu/pool_raw.h"

namespace cresset {

/// True when the row kernels below serve the shape well; otherwise plain loops do.
bool pool_rows_fit(const PoolShape& s);

/// One plane of max pooling; see max_pool2d_forward.
void max_pool_plane(const PoolShape& s, const float* x, float* y, int64_t* indices);
void max_pool_plane(const PoolShape& s, const double* x, double* y, int64_t* indices);
void max_pool_plane(const PoolShape& s, const int64_t* x, int64_t* y, int64_t* indices);

/// Sums of the windows of one plane, padding counting as 0.
void sum_pool_plane(const PoolShape& s, const float* x, float* y);
void sum_pool_plane(const PoolShape& s, const double* x, double* y);
void sum_pool_plane(const PoolShape& s, const int64_t* x, int64_t* y);

}  // namespace cresset
