// Where the CUDA library's table of each family goes, by the name of its type.
#include <string_view>

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

namespace cresset {
namespace {

struct Place {
  std::string_view name;
  const void** slot;
};

template <class Kernels> const void** slot_of() {
  return reinterpret_cast<const void**>(&cuda_kernels<Kernels>);
}

}  // namespace

const void** cuda_table_slot(const char* kernels) {
  const Place places[] = {
      {"ActivationKernels", slot_of<ActivationKernels>()},
      {"ConvKernels", slot_of<ConvKernels>()},
      {"CopyKernels", slot_of<CopyKernels>()},
      {"CtcKernels", slot_of<CtcKernels>()},
      {"DistanceKernels", slot_of<DistanceKernels>()},
      {"ElementwiseKernels", slot_of<ElementwiseKernels>()},
      {"EmbeddingKernels", slot_of<EmbeddingKernels>()},
      {"FftKernels", slot_of<FftKernels>()},
      {"FractionalPoolKernels", slot_of<FractionalPoolKernels>()},
      {"GridKernels", slot_of<GridKernels>()},
      {"IndexingKernels", slot_of<IndexingKernels>()},
      {"LinalgKernels", slot_of<LinalgKernels>()},
      {"LossKernels", slot_of<LossKernels>()},
      {"MatmulKernels", slot_of<MatmulKernels>()},
      {"MatrixExpKernels", slot_of<MatrixExpKernels>()},
      {"NormalizationKernels", slot_of<NormalizationKernels>()},
      {"OptimKernels", slot_of<OptimKernels>()},
      {"PadKernels", slot_of<PadKernels>()},
      {"PoolKernels", slot_of<PoolKernels>()},
      {"RandomKernels", slot_of<RandomKernels>()},
      {"RangeKernels", slot_of<RangeKernels>()},
      {"ReduceKernels", slot_of<ReduceKernels>()},
      {"ScanKernels", slot_of<ScanKernels>()},
      {"ScatterKernels", slot_of<ScatterKernels>()},
      {"SearchKernels", slot_of<SearchKernels>()},
      {"SoftmaxKernels", slot_of<SoftmaxKernels>()},
      {"SortKernels", slot_of<SortKernels>()},
      {"SpectralKernels", slot_of<SpectralKernels>()},
      {"VisionKernels", slot_of<VisionKernels>()},
  };
  for (const Place& p : places)
    if (p.name == kernels) return p.slot;
  fail(ErrorKind::Internal, "cuda: the core has no family ", kernels);
}

}  // namespace cresset
