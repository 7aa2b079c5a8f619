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

// Depths of the drawn Gaussians, `stride` floats apart, in ascending order.
inline void depth_rows(const View& view, int stride, float* rows) {
    for_drawn_ranges(view, [&](int begin, int end) {  // footprints lie front to back
        for (int n = begin; n < end; ++n)
            rows[std::size_t(view.footprints[n].rank) * stride] = view.footprints[n].depth;
    });
}

inline void fill_zero(float* out, std::size_t size) {
    constexpr std::size_t chunk = std::size_t(1) << 16;
    parallel_for(static_cast<int>((size + chunk - 1) / chunk), [&](int block, int) {
        const std::size_t begin = block * chunk;
        std::memset(out + begin, 0, std::min(chunk, size - begin) * sizeof(float));
    });
}

// Zeroes the rows of Gaussians that are not drawn; the others are left to be written.
inline void zero_undrawn(const View& view, float* out, std::size_t width) {
    constexpr int64_t chunk = 4096;
    const uint32_t *first = view.drawn.data, *last = first + view.drawn.size;
    parallel_for(static_cast<int>((view.count + chunk - 1) / chunk), [&](int block, int) {
        int64_t at = block * chunk;
        const int64_t end = std::min(view.count, at + chunk);
        for (const uint32_t* next = std::lower_bound(first, last, at); at < end; ++at) {
            const int64_t drawn = next < last ? std::min<int64_t>(*next++, end) : end;
            std::memset(out + at * width, 0, (drawn - at) * width * sizeof(float));
            at = drawn;
        }
    });
}

// out[gaussian] = sum of its partial rows; zero where a Gaussian is not drawn.
inline void sum_partials(const View& view, const Partials& partials, float* out) {
    const int width = partials.width;
    zero_undrawn(view, out, width);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int k = begin; k < end; ++k) {
            float* sum = out + std::size_t(view.drawn[k]) * width;
            for (int c = 0; c < width; ++c) sum[c] = 0;
            for (uint32_t n = view.emission_start[k]; n < view.emission_start[k + 1]; ++n)
                for (int c = 0; c < width; ++c) sum[c] += partials.row(n)[c];
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
