// The SIMD part of pooling: whole output rows from padded input rows split by the stride.
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

/// One plane of average pooling; see avg_pool2d_forward.
void avg_pool_plane(const PoolShape& s, const AvgPoolDivisor& divisor, const float* x, float* y);
void avg_pool_plane(const PoolShape& s, const AvgPoolDivisor& divisor, const double* x, double* y);

}  // namespace cresset
