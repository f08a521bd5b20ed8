// Eigenvalues and eigenvectors of one general matrix.
#pragma once

#include <complex>
#include <cstdint>

namespace cresset {

/// a [n, n] by rows, finite: values [n] and unit vectors as columns [n, n]. False where the
/// iteration did not converge.
bool eig_one(const std::complex<double>* a, std::complex<double>* values,
             std::complex<double>* vectors, int64_t n);

}  // namespace cresset
