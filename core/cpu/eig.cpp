// Eigenvalues of general matrices by the shifted QR iteration: Golub and Van Loan, "Matrix
// computations", 7.4 to 7.6, in complex numbers.
#include "core/cpu/eig.h"

#include <cmath>
#include <limits>
#include <vector>

namespace cresset {
namespace {

using C = std::complex<double>;
constexpr double eps = std::numeric_limits<double>::epsilon();

double size(C x) { return std::abs(x.real()) + std::abs(x.imag()); }

/// A = Q H Q^H, reduced in place: h first to Hessenberg form, then to a triangle.
class Schur {
 public:
  Schur(const C* a, int64_t n) : n_(n), h_(a, a + n * n), q_(static_cast<size_t>(n * n)) {
    for (int64_t i = 0; i < n; ++i) q(i, i) = 1;
    for (int64_t k = 0; k + 2 < n; ++k) reflect(k);
  }

  /// False when some eigenvalue takes too many steps.
  bool iterate() {
    constexpr int most_steps = 300;
    int steps = 0;
    for (int64_t high = n_ - 1; high > 0;) {
      const int64_t low = active_from(high);
      if (low == high) {
        --high;
        steps = 0;
      } else if (++steps > most_steps) {
        return false;
      } else {
        step(low, high, shift(high, steps));
      }
    }
    return true;
  }

  /// Eigenvectors of the triangle by substitution, turned back by Q.
  void eigenvectors(C* values, C* vectors) const {
    double norm = 0;
    for (C x : h_) norm = std::max(norm, std::abs(x));
    const double smallest = std::max(eps * norm, std::numeric_limits<double>::min());
    std::vector<C> x(static_cast<size_t>(n_));
    for (int64_t k = 0; k < n_; ++k) {
      values[k] = h(k, k);
      x[k] = 1;
      for (int64_t i = k - 1; i >= 0; --i) {
        C sum = 0;
        for (int64_t j = i + 1; j <= k; ++j) sum += h(i, j) * x[j];
        C gap = h(k, k) - h(i, i);
        if (size(gap) < smallest) gap = smallest;
        x[i] = sum / gap;
        rescale(x, i, k);
      }
      turn_back(x, k, vectors);
    }
  }

 private:
  C& h(int64_t i, int64_t j) { return h_[static_cast<size_t>(i * n_ + j)]; }
  const C& h(int64_t i, int64_t j) const { return h_[static_cast<size_t>(i * n_ + j)]; }
  C& q(int64_t i, int64_t j) { return q_[static_cast<size_t>(i * n_ + j)]; }
  const C& q(int64_t i, int64_t j) const { return q_[static_cast<size_t>(i * n_ + j)]; }

  /// Householder's reflection that clears column k below its subdiagonal.
  void reflect(int64_t k) {
    double below = 0;
    for (int64_t i = k + 2; i < n_; ++i) below = std::hypot(below, std::abs(h(i, k)));
    if (below == 0) return;
    const C alpha = h(k + 1, k);
    const double norm = std::hypot(below, std::abs(alpha));
    const C phase = alpha == C(0) ? C(1) : alpha / std::abs(alpha);
    std::vector<C> v(static_cast<size_t>(n_));
    v[k + 1] = alpha + phase * norm;
    for (int64_t i = k + 2; i < n_; ++i) v[i] = h(i, k);
    const double scale = 1 / (norm * (norm + std::abs(alpha)));
    for (int64_t j = 0; j < n_; ++j) {
      C along = 0;
      for (int64_t i = k + 1; i < n_; ++i) along += std::conj(v[i]) * h(i, j);
      for (int64_t i = k + 1; i < n_; ++i) h(i, j) -= v[i] * (along * scale);
    }
    auto from_right = [&](std::vector<C>& m) {
      for (int64_t i = 0; i < n_; ++i) {
        C along = 0;
        for (int64_t j = k + 1; j < n_; ++j) along += m[i * n_ + j] * v[j];
        for (int64_t j = k + 1; j < n_; ++j) m[i * n_ + j] -= along * scale * std::conj(v[j]);
      }
    };
    from_right(h_);
    from_right(q_);
    for (int64_t i = k + 2; i < n_; ++i) h(i, k) = 0;
  }

  /// The first row of the last block that has not fallen apart.
  int64_t active_from(int64_t high) {
    for (int64_t l = high; l > 0; --l) {
      double around = size(h(l - 1, l - 1)) + size(h(l, l));
      if (around == 0) around = 1;
      if (size(h(l, l - 1)) > eps * around) continue;
      h(l, l - 1) = 0;
      return l;
    }
    return 0;
  }

  /// The eigenvalue of the last 2 x 2 block that is closer to its corner (Wilkinson's shift); now
  /// and then another number, to leave cycles.
  C shift(int64_t high, int steps) const {
    const C d = h(high, high);
    if (steps % 10 == 0) return d + size(h(high, high - 1));
    const C half = (h(high - 1, high - 1) - d) / 2.0;
    const C bc = h(high - 1, high) * h(high, high - 1);
    const C root = std::sqrt(half * half + bc);
    const C away = size(half + root) > size(half - root) ? half + root : half - root;
    return away == C(0) ? d : d - bc / away;
  }

  /// One QR step of the block [low, high]: H - s = Q R, then R Q + s.
  void step(int64_t low, int64_t high, C s) {
    for (int64_t i = low; i <= high; ++i) h(i, i) -= s;
    std::vector<C> cosines(static_cast<size_t>(high)), sines(static_cast<size_t>(high));
    for (int64_t k = low; k < high; ++k) {
      const C a = h(k, k), b = h(k + 1, k);
      const double r = std::hypot(std::abs(a), std::abs(b));
      const C c = cosines[k] = r == 0 ? C(1) : a / r;
      const C t = sines[k] = r == 0 ? C(0) : b / r;
      for (int64_t j = k; j < n_; ++j) {
        const C x = h(k, j), y = h(k + 1, j);
        h(k, j) = std::conj(c) * x + std::conj(t) * y;
        h(k + 1, j) = c * y - t * x;
      }
    }
    for (int64_t k = low; k < high; ++k) {
      turn_columns(h_, k, std::min(k + 2, high + 1), cosines[k], sines[k]);
      turn_columns(q_, k, n_, cosines[k], sines[k]);
    }
    for (int64_t i = low; i <= high; ++i) h(i, i) += s;
  }
  void turn_columns(std::vector<C>& m, int64_t k, int64_t rows, C c, C t) {
    for (int64_t i = 0; i < rows; ++i) {
      C &x = m[i * n_ + k], &y = m[i * n_ + k + 1];
      const C old = x;
      x = old * c + y * t;
      y = y * std::conj(c) - old * std::conj(t);
    }
  }

  /// Keeps the numbers of a substitution in range.
  static void rescale(std::vector<C>& x, int64_t from, int64_t to) {
    constexpr double large = 1e150;
    if (size(x[from]) < large) return;
    const double factor = 1 / size(x[from]);
    for (int64_t j = from; j <= to; ++j) x[j] *= factor;
  }

  void turn_back(const std::vector<C>& x, int64_t k, C* vectors) const {
    double length = 0;
    for (int64_t i = 0; i < n_; ++i) {
      C sum = 0;
      for (int64_t j = 0; j <= k; ++j) sum += q(i, j) * x[j];
      vectors[i * n_ + k] = sum;
      length = std::hypot(length, std::abs(sum));
    }
    for (int64_t i = 0; i < n_; ++i) vectors[i * n_ + k] /= length;
  }

  int64_t n_;
  std::vector<C> h_, q_;
};

}  // namespace

bool eig_one(const C* a, C* values, C* vectors, int64_t n) {
  Schur schur(a, n);
  const bool converged = schur.iterate();
  schur.eigenvectors(values, vectors);
  return converged;
}

}  // namespace cresset
