// SPDX-License-Identifier: Apache-2.0
// Sums over pixels are formed per (tile, Gaussian) first and then per Gaussian in a fixed
// order, so no two threads ever add into the same place.
#pragma once

#include <cstring>

#include "isa.hpp"

namespace splat {
namespace SPLAT_ISA {

struct Partials {
    Array<float> rows;
    int width;
    Partials(const View& view, int width) : width(width) { rows.resize(view.entries.size * width); }
    float* row(uint32_t emission) const { return rows.data + std::size_t(emission) * width; }
};

// reduce(begin, end) over ranges of drawn Gaussians; their rows lie in the same order.
template <class Reduce>
void for_drawn_ranges(const View& view, Reduce&& reduce) {
    constexpr int chunk = 1024;
    const int drawn = static_cast<int>(view.drawn.size);
    parallel_for((drawn + chunk - 1) / chunk, [&](int block, int) {
        reduce(block * chunk, std::min(drawn, (block + 1) * chunk));
    });
}

inline void fill_zero(float* out, std::size_t size) {
    constexpr std::size_t chunk = std::size_t(1) << 16;
    parallel_for(static_cast<int>((size + chunk - 1) / chunk), [&](int block, int) {
        const std::size_t begin = block * chunk;
        std::memset(out + begin, 0, std::min(chunk, size - begin) * sizeof(float));
    });
}

// out[gaussian] = sum of its partial rows; zero where a Gaussian is not drawn.
inline void sum_partials(const View& view, const Partials& partials, float* out) {
    const int width = partials.width;
    fill_zero(out, std::size_t(view.count) * width);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int k = begin; k < end; ++k) {
            float* sum = out + std::size_t(view.drawn[k]) * width;
            for (uint32_t n = view.emission_start[k]; n < view.emission_start[k + 1]; ++n)
                for (int c = 0; c < width; ++c) sum[c] += partials.row(n)[c];
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
