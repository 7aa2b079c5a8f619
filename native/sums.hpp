// SPDX-License-Identifier: Apache-2.0
// Sums of floats: a few vectors in float, of those in double, in an order that depends on
// nothing but the number of values.
#pragma once

#include <algorithm>

#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {

template <class F>
inline double sum_of(const float* values, int count, F&& f) {
    constexpr int lanes = Vec::width, stretch = 32 * lanes;
    alignas(64) float rest[lanes] = {};
    double total = 0;
    int k = 0;
    while (k + lanes <= count) {
        Vec acc = Vec::all(0.0f);
        for (const int end = std::min(k + stretch, count - lanes + 1); k < end; k += lanes)
            acc = acc + f(Vec::load(values + k));
        total += sum(acc);
    }
    if (k == count) return total;
    std::copy(values + k, values + count, rest);
    f(Vec::load(rest)).store(rest);
    for (int lane = 0; lane < count - k; ++lane) total += rest[lane];
    return total;
}

inline double sum_of(const float* values, int count) {
    return sum_of(values, count, [](Vec v) { return v; });
}

}  // namespace SPLAT_ISA
}  // namespace splat
