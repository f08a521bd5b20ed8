// CPU kernels of symmetric eigenvalues and singular values by Jacobi rotations: Golub and Van Loan,
// "Matrix computations", 8.5 and 8.6.
#include "core/ops/spectral.h"

#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "core/cpu/eig.h"

namespace cresset {
namespace {

constexpr int most_sweeps = 60;
constexpr double eps = std::numeric_limits<double>::epsilon();

inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
inline double real_part(double x) { return x; }
inline double real_part(std::complex<double> x) { return x.real(); }
template <class T> double square(T x) { return real_part(x * conjugate(x)); }

/// Calls f(i) for every matrix of a batch. In order: each takes memory of its own, and what runs in
/// parallel must not throw.
template <class F> void for_each_matrix(const Tensor& a, F&& f) {
  for (int64_t i = 0; i < a.size(0); ++i) f(i);
}

struct Rotation {
  double c, s;
};

/// The rotation that makes [[a, g], [g, b]] diagonal, for a real g above 0.
Rotation rotation_of(double a, double b, double g) {
  const double zeta = (b - a) / (2 * g);
  const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::hypot(1.0, zeta));
  const double c = 1 / std::hypot(1.0, t);
  return {c, c * t};
}

/// Rows x and y of n elements become c x - s y phase^* and s x + c y phase^*.
template <class T> void rotate(T* x, T* y, int64_t n, Rotation r, T phase) {
  const T turned = conjugate(phase);
  for (int64_t i = 0; i < n; ++i) {
    const T p = x[i], q = y[i] * turned;
    x[i] = p * r.c - q * r.s;
    y[i] = p * r.s + q * r.c;
  }
}

/// Positions in the order that `before` sorts them to.
template <class F> std::vector<int64_t> sorted(int64_t n, F before) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

// ---- eigenvalues of Hermitian matrices

/// a becomes diagonal; the rows of v, the identity before, become the conjugated eigenvectors.
template <class T> void diagonalize(T* a, T* v, int64_t n) {
  double norm = 0;
  for (int64_t i = 0; i < n * n; ++i) norm = std::hypot(norm, std::abs(a[i]));
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const T g = a[p * n + q];
        const double size = std::abs(g);
        const double a_pp = real_part(a[p * n + p]), a_qq = real_part(a[q * n + q]);
        // Small beside its diagonal elements, or beside the rounding errors of the whole.
        if (size <= eps * std::sqrt(std::abs(a_pp)) * std::sqrt(std::abs(a_qq)) ||
            size <= 1e-3 * eps * norm)
          continue;
        rotated = true;
        const Rotation r = rotation_of(a_pp, a_qq, size);
        const T phase = conjugate(g) / size;
        for (int64_t i = 0; i < n; ++i) {
          T &x = a[i * n + p], &y = a[i * n + q];
          const T turned = y * phase;
          y = x * r.s + turned * r.c;
          x = x * r.c - turned * r.s;
        }
        rotate(a + p * n, a + q * n, n, r, phase);
        rotate(v + p * n, v + q * n, n, r, phase);
        a[p * n + q] = a[q * n + p] = T(0);
      }
    if (!rotated) return;
  }
}

template <class T> void eigh_one(const T* x, bool upper, double* values, T* vectors, int64_t n) {
  std::vector<T> a(static_cast<size_t>(n * n)), v(static_cast<size_t>(n * n), T(0));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const T low = upper ? conjugate(x[j * n + i]) : x[i * n + j];
      a[i * n + j] = low;
      a[j * n + i] = conjugate(low);
    }
    a[i * n + i] = real_part(x[i * n + i]);
    v[i * n + i] = T(1);
  }
  diagonalize(a.data(), v.data(), n);
  auto value = [&](int64_t i) { return real_part(a[i * n + i]); };
  const auto order = sorted(n, [&](int64_t i, int64_t j) { return value(i) < value(j); });
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    values[j] = value(from);
    for (int64_t i = 0; i < n; ++i) vectors[i * n + j] = conjugate(v[from * n + i]);
  }
}

template <class T>
void eigh_all(const Tensor& a, bool upper, const Tensor& values, const Tensor& vectors) {
  const int64_t n = a.size(1);
  for_each_matrix(a, [&](int64_t i) {
    eigh_one(a.data<T>() + i * n * n, upper, values.data<double>() + i * n,
             vectors.data<T>() + i * n * n, n);
  });
}

void eigh(const Tensor& a, bool upper, const Tensor& values, const Tensor& vectors) {
  if (a.is_complex()) return eigh_all<std::complex<double>>(a, upper, values, vectors);
  eigh_all<double>(a, upper, values, vectors);
}

// ---- singular values

/// Rotates the rows of w [n, m] until they are orthogonal, and the rows of v [n, n] with them.
template <class T> void orthogonalize(T* w, T* v, int64_t n, int64_t m) {
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        T *x = w + p * m, *y = w + q * m;
        double a = 0, b = 0;
        T g(0);
        for (int64_t i = 0; i < m; ++i) {
          a += square(x[i]);
          b += square(y[i]);
          g += conjugate(x[i]) * y[i];
        }
        const double size = std::abs(g);
        if (!(size > 4 * eps * std::sqrt(a) * std::sqrt(b)) || size < 1e-290) continue;
        rotated = true;
        const Rotation r = rotation_of(a, b, size);
        const T phase = g / size;
        rotate(x, y, m, r, phase);
        rotate(v + p * n, v + q * n, n, r, phase);
      }
    if (!rotated) return;
  }
}

/// Fills rows [from, n) of an orthonormal set of rows of m elements.
template <class T> void complete(T* rows, int64_t from, int64_t n, int64_t m) {
  int64_t axis = 0;
  for (int64_t k = from; k < n; ++k) {
    T* row = rows + k * m;
    // Of the axes that are left, one is far enough from the span of the rows before.
    for (double length = 0; length * length * static_cast<double>(m) < 0.5; ++axis) {
      std::fill_n(row, m, T(0));
      row[axis % m] = T(1);
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t j = 0; j < k; ++j) {
          T along(0);
          for (int64_t i = 0; i < m; ++i) along += conjugate(rows[j * m + i]) * row[i];
          for (int64_t i = 0; i < m; ++i) row[i] -= along * rows[j * m + i];
        }
      length = 0;
      for (int64_t i = 0; i < m; ++i) length = std::hypot(length, std::abs(row[i]));
      for (int64_t i = 0; i < m && length > 0; ++i) row[i] /= length;
    }
  }
}

/// For rows w [n, m] (the columns of a matrix, n <= m): left [n or m, m] and right [n, n] rows of
/// singular vectors, s [n].
template <class T> struct Svd {
  std::vector<T> left, right;
  std::vector<double> s;

  Svd(std::vector<T> w, int64_t n, int64_t m, int64_t rows)
      : left(static_cast<size_t>(rows * m)), right(static_cast<size_t>(n * n)) {
    double largest = 0;
    for (T x : w) largest = std::max(largest, std::abs(x));
    // Squares of the elements neither overflow nor vanish.
    const double scale = largest > 0 ? std::exp2(-std::floor(std::log2(largest))) : 1;
    for (T& x : w) x *= scale;
    std::vector<T> v(static_cast<size_t>(n * n), T(0));
    for (int64_t i = 0; i < n; ++i) v[i * n + i] = T(1);
    orthogonalize(w.data(), v.data(), n, m);
    std::vector<double> norms(static_cast<size_t>(n), 0.0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) norms[j] = std::hypot(norms[j], std::abs(w[j * m + i]));
    const auto order = sorted(n, [&](int64_t i, int64_t j) { return norms[i] > norms[j]; });
    int64_t rank = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t from = order[static_cast<size_t>(j)];
      s.push_back(norms[from] / scale);
      std::copy_n(v.data() + from * n, n, right.data() + j * n);
      if (norms[from] < 1e-150) continue;
      rank = j + 1;
      for (int64_t i = 0; i < m; ++i) left[j * m + i] = w[from * m + i] / norms[from];
    }
    complete(left.data(), rank, rows, m);
  }
};

template <class T>
void svd_one(const T* a, int64_t m, int64_t n, T* u, int64_t mu, double* s, T* vh, int64_t nv) {
  const bool wide = m < n;
  std::vector<T> w(static_cast<size_t>(m * n));
  // The columns of a as rows; of a wide matrix those of its adjoint.
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (wide)
        w[i * n + j] = conjugate(a[i * n + j]);
      else
        w[j * m + i] = a[i * n + j];
  const Svd<T> r(std::move(w), std::min(m, n), std::max(m, n), wide ? nv : mu);
  std::copy(r.s.begin(), r.s.end(), s);
  const std::vector<T>&columns = wide ? r.right : r.left, &rows = wide ? r.left : r.right;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < mu; ++j) u[i * mu + j] = columns[j * m + i];
  for (int64_t i = 0; i < nv * n; ++i) vh[i] = conjugate(rows[i]);
}

template <class T>
void svd_all(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh) {
  const int64_t m = a.size(1), n = a.size(2), mu = u.size(2), nv = vh.size(1);
  for_each_matrix(a, [&](int64_t i) {
    svd_one(a.data<T>() + i * m * n, m, n, u.data<T>() + i * m * mu, mu,
            s.data<double>() + i * std::min(m, n), vh.data<T>() + i * nv * n, nv);
  });
}

void svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh) {
  if (a.is_complex()) return svd_all<std::complex<double>>(a, u, s, vh);
  svd_all<double>(a, u, s, vh);
}

void eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  using C = std::complex<double>;
  const int64_t n = a.size(1);
  for_each_matrix(a, [&](int64_t i) {
    const bool done = eig_one(a.data<C>() + i * n * n, values.data<C>() + i * n,
                              vectors.data<C>() + i * n * n, n);
    info.data<int32_t>()[i] = done ? 0 : 1;
  });
}

}  // namespace

template <> const SpectralKernels& cpu_kernels<SpectralKernels>() {
  static constexpr SpectralKernels table = {.eigh = eigh, .svd = svd, .eig = eig};
  return table;
}

}  // namespace cresset
