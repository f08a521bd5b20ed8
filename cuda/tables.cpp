// Puts every table of tables.def in its place.
#include "cuda/tables.h"

#include "core/ops/activation.h"
#include "core/ops/conv.h"
#include "core/ops/copy_kernels.h"
#include "core/ops/creation.h"
#include "core/ops/ctc.h"
#include "core/ops/distance.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/fft.h"
#include "core/ops/fractional_pool.h"
#include "core/ops/grid_sample.h"
#include "core/ops/indexing.h"
#include "core/ops/linalg.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/matrix_exp.h"
#include "core/ops/normalization.h"
#include "core/ops/optim.h"
#include "core/ops/pad.h"
#include "core/ops/pool.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/scatter.h"
#include "core/ops/search.h"
#include "core/ops/softmax.h"
#include "core/ops/sort.h"
#include "core/ops/spectral.h"
#include "core/ops/vision.h"
#include "cuda/launch.h"

namespace cresset::cuda {

#define TABLE(type) template <> const type& cuda_table<type>();
#include "cuda/tables.def"
#undef TABLE

void register_tables() {
#define TABLE(type) *cuda_table_slot(#type) = &cuda_table<type>();
#include "cuda/tables.def"
#undef TABLE
}

}  // namespace cresset::cuda
