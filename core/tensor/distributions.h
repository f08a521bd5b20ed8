// Fills of contiguous memory with PyTorch's CPU numbers, one function per distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/tensor/dtype.h"
#include "core/tensor/generator.h"

namespace cresset {

// `out` holds n elements of `dtype`. Each fill holds the generator's mutex; a bad parameter or a
// dtype that PyTorch does not fill so is an error that begins with PyTorch's name of the operator,
// raised before anything is drawn or written. The order of draws is the order of memory: PyTorch
// too visits a dense tensor in memory order whatever its strides, so a transposed weight is filled
// as if it were contiguous (`fill_normal` and `fill_bernoulli` of tensors say what else counts).

/// Uniform in [low, high), for floats and complex (both parts).
void fill_uniform(Generator& generator, DType dtype, void* out, int64_t n, double low, double high);

/// Normal, for floats and complex (half of the variance in each part). From 16 numbers on PyTorch
/// draws contiguous tensors in blocks of 16, others one by one in double: `contiguous` says which.
void fill_normal(Generator& generator, DType dtype, void* out, int64_t n, double mean, double std,
                 bool contiguous = true);

/// exp of a normal number with these parameters, for floats.
void fill_log_normal(Generator& generator, DType dtype, void* out, int64_t n, double mean,
                     double std);

/// Exponential with rate `lambda`, for floats.
void fill_exponential(Generator& generator, DType dtype, void* out, int64_t n, double lambda);

/// Cauchy around `median`, for floats.
void fill_cauchy(Generator& generator, DType dtype, void* out, int64_t n, double median,
                 double sigma);

/// Number of trials up to the first success, 1 or more, for integers and floats.
void fill_geometric(Generator& generator, DType dtype, void* out, int64_t n, double p);

/// 1 with probability p, else 0, for all but complex. `dropout(x, rate)` is this fill with
/// p = 1 - rate in the dtype of x, then divided by p and multiplied by x.
void fill_bernoulli(Generator& generator, DType dtype, void* out, int64_t n, double p);

/// 1 with probability p[i], where p holds n floats of `p_dtype` in the order of `out`: 32 bits per
/// element where the number above takes 64, except when `p_dtype` is float64.
void fill_bernoulli(Generator& generator, DType dtype, void* out, int64_t n, DType p_dtype,
                    const void* p);

/// Integers in [low, high), as `randint` and `random_(low, high)`, for all but complex. Without
/// `high` up to the largest integer of the dtype (2^digits for a float).
void fill_randint(Generator& generator, DType dtype, void* out, int64_t n, int64_t low,
                  std::optional<int64_t> high);

/// The first integer and the number of integers that fill_randint draws from.
std::pair<int64_t, uint64_t> integer_range(DType dtype, int64_t low, std::optional<int64_t> high);

/// `random_()`, for all but complex: integers in [0, largest], floats in [0, 2^digits].
void fill_random(Generator& generator, DType dtype, void* out, int64_t n);

/// A permutation of 0 ... n - 1, for integers and floats.
void fill_randperm(Generator& generator, DType dtype, void* out, int64_t n);

/// Poisson with mean rate[i] of the same float dtype; `out` may be `rate`.
void fill_poisson(Generator& generator, DType dtype, void* out, const void* rate, int64_t n);

/// Draws `samples` category indices per row of float weights [rows, categories] into
/// out [rows, samples].
void fill_multinomial(Generator& generator, int64_t* out, DType dtype, const void* weights,
                      int64_t rows, int64_t categories, int64_t samples, bool replacement);

}  // namespace cresset
