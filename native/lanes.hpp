// SPDX-License-Identifier: Apache-2.0
// Several Gaussians at once in double precision: geometry is computed in vectors of `Real`,
// written like scalar code.
#pragma once

#include <cmath>
#include <cstdint>

namespace splat {
namespace SPLAT_ISA {

#if defined(SPLAT_AVX512)
constexpr int real_lanes = 8;
#elif defined(SPLAT_AVX2)
constexpr int real_lanes = 4;
#else
constexpr int real_lanes = 2;
#endif

typedef double Real __attribute__((vector_size(8 * real_lanes)));
typedef int64_t Flag __attribute__((vector_size(8 * real_lanes)));  // -1 true, 0 false
typedef uint64_t RealBits __attribute__((vector_size(8 * real_lanes)));

inline Real all(double x) { return Real{} + x; }
inline Real larger(Real a, Real b) { return a > b ? a : b; }
inline Real smaller(Real a, Real b) { return a < b ? a : b; }

inline Real square_root(Real a) {
    Real r;
    for (int k = 0; k < real_lanes; ++k) r[k] = std::sqrt(a[k]);
    return r;
}

// e^x to 1e-14 relative, x clamped to the range of finite results.
inline Real exponential(Real x) {
    x = larger(smaller(x, all(700.0)), all(-700.0));
    const Real shifter = all(6755399441055744.0);  // 1.5 * 2^52: rounds, leaves n in the low bits
    const Real shifted = x * 1.4426950408889634 + shifter;
    const Real n = shifted - shifter;
    const Real r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    Real p = all(1.0 / 39916800);
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return (Real)((RealBits)p + ((RealBits)shifted << 52));
}

// True where a value is neither infinite nor NaN.
inline Flag finite(Real a) { return (a - a) == 0.0; }

// Column `c` of rows `index[0 .. real_lanes)` of a float table.
inline Real gather(const float* table, int columns, int c, const int64_t* index) {
    Real r;
    for (int k = 0; k < real_lanes; ++k) r[k] = table[index[k] * columns + c];
    return r;
}

}  // namespace SPLAT_ISA
}  // namespace splat
