// SPDX-License-Identifier: Apache-2.0
// Exact order statistics of many floats. A sample brackets the wanted one; a sweep counts what
// lies below the bracket and keeps what lies inside; a few of those are left to be sorted. A
// sample that misleads costs a second sweep, never the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {

struct Bracket {
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
};

// Sorted values of places spread evenly over 0 .. count - 1 by the golden ratio.
template <class At>
inline void sample_sorted(std::size_t count, int samples, float* values, At&& at) {
    for (int k = 0; k < samples; ++k) {
        const float v = at((uint64_t(k) * 2654435769u & 0xffffffffu) * count >> 32);
        values[k] = std::isnan(v) ? 0.0f : v;
    }
    std::sort(values, values + samples);
}

// About the q-quantile of a sorted sample: two and a half standard deviations of its rank.
inline Bracket bracket_of(const float* sorted, int count, double q) {
    const double reach = 1 + 2.5 * std::sqrt(q * (1 - q) * count);
    const int low = static_cast<int>(std::floor(q * count - reach));
    const int high = static_cast<int>(std::ceil(q * count + reach));
    Bracket b;
    if (low >= 0) b.low = sorted[low];
    if (high < count) b.high = sorted[high];
    return b;
}

// Counts values below the bracket, and appends those inside to `kept`, which has room for all.
inline void divide_values(const float* values, int count, Bracket bracket, int64_t& below,
                          int64_t& inside, float* kept) {
    const Vec low = Vec::all(bracket.low), high = Vec::all(bracket.high);
    float* out = kept + inside;
    int64_t less = 0;
    int k = 0;
    for (; k + Vec::width <= count; k += Vec::width) {
        const Vec v = Vec::load(values + k);
        less += __builtin_popcount(bits(v < low));
        out += compress(v, bits((v >= low) & (high >= v)), out);
    }
    for (; k < count; ++k) {
        less += values[k] < bracket.low;
        if (values[k] >= bracket.low && values[k] <= bracket.high) *out++ = values[k];
    }
    below += less;
    inside = out - kept;
}

// The rank-th smallest of values inside a bracket, counted from 1; the values are overwritten.
// Buckets of equal width leave few to sort.
inline float select(float* values, int64_t count, int64_t rank, Bracket bracket) {
    constexpr int buckets = 1024;
    const float scale = buckets / (bracket.high - bracket.low);
    if (std::isfinite(scale) && scale > 0) {
        const auto bucket = [&](float v) {
            return std::min(static_cast<int>((v - bracket.low) * scale), buckets - 1);
        };
        uint32_t filled[buckets] = {};
        for (int64_t k = 0; k < count; ++k) ++filled[bucket(values[k])];
        int wanted = 0;
        for (; rank > filled[wanted]; ++wanted) rank -= filled[wanted];
        const float end = wanted + 1 < buckets ? static_cast<float>(wanted + 1) : INFINITY;
        const Vec from = Vec::all(static_cast<float>(wanted)), to = Vec::all(end);
        int64_t left = 0, k = 0;
        for (; k + Vec::width <= count; k += Vec::width) {  // never writes beyond what is read
            const Vec v = Vec::load(values + k);
            const Vec at = (v - Vec::all(bracket.low)) * Vec::all(scale);
            left += compress(v, bits((at >= from) & (to > at)), values + left);
        }
        for (; k < count; ++k) {
            const float v = values[k];
            values[left] = v;
            left += bucket(v) == wanted;
        }
        count = left;
    }
    std::nth_element(values, values + rank - 1, values + count);
    return values[rank - 1];
}

}  // namespace SPLAT_ISA
}  // namespace splat
