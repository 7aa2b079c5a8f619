// SPDX-License-Identifier: Apache-2.0
// Each step rounds by itself, as NumPy and torch round it: this file is compiled without
// contraction of products and sums. Torch's own threads would go on spinning for milliseconds on
// the cores that the kernels use next.
#include "widths.hpp"

#include <algorithm>
#include <cstdint>

#include "pool.hpp"

namespace splat {
namespace {

constexpr std::size_t block = 8192;
constexpr std::size_t unrolled = 8, longest_run = 128;

// body(block, begin, count) for blocks of values.
template <class F>
void for_blocks(std::size_t count, F&& body) {
    parallel_for(static_cast<int>((count + block - 1) / block), [&](int k, int) {
        const std::size_t begin = block * k;
        body(k, begin, std::min(block, count - begin));
    });
}

// A sum in double whose order is NumPy's: halves of halves, and eight partial sums in a run.
double pairwise_sum(const float* values, std::size_t count) {
    if (count > longest_run) {
        const std::size_t half = count / 2 / unrolled * unrolled;
        return pairwise_sum(values, half) + pairwise_sum(values + half, count - half);
    }
    double partial[unrolled] = {}, total = 0;
    std::size_t k = 0;
    if (count >= unrolled) {
        for (; k + unrolled <= count; k += unrolled)
            for (std::size_t lane = 0; lane < unrolled; ++lane) partial[lane] += values[k + lane];
        total = ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                ((partial[4] + partial[5]) + (partial[6] + partial[7]));
    }
    for (; k < count; ++k) total += values[k];
    return total;
}

}  // namespace

double widen(const WidenRequest& q) {
    Array<double> sums;
    sums.resize((q.count + block - 1) / block);
    for_blocks(q.count, [&](int index, std::size_t begin, std::size_t count) {
        const float *values = q.values + begin, *opacity = q.opacity + begin;
        float* out = q.out + begin;
        for (std::size_t k = 0; k < count; ++k) {
            const float hole = 1.0f - opacity[k];
            out[k] = (q.squared ? hole * hole : hole) * q.prior + (values[k] * q.times + q.plus);
        }
        sums[index] = pairwise_sum(out, count);
    });
    double total = 0;
    for (std::size_t k = 0; k < sums.size; ++k) total += sums[k];
    return total / static_cast<double>(q.count);
}

void shrink(const ShrinkRequest& q) {
    for_blocks(q.count, [&](int, std::size_t begin, std::size_t count) {
        const float* values = q.values + begin;
        float* out = q.out + begin;
        for (std::size_t k = 0; k < count; ++k)
            out[k] = (values[k] / q.unit * q.kept + q.rest) * q.times;
    });
}

void count_hardly_shown(HardlyShown& q) {
    struct Counts {
        uint32_t of[3];
    };
    Array<Counts> counts;
    counts.resize((q.count + block - 1) / block);
    for_blocks(q.count, [&](int index, std::size_t begin, std::size_t count) {
        uint32_t thin = 0, unseen = 0, oblique = 0;
        for (std::size_t k = begin; k < begin + count; ++k) {
            thin += q.opacity[k] < q.least_opacity;
            unseen += q.exposure[k] < q.least_exposure;
            oblique += q.angle[k] > q.most_angle;
        }
        counts[index] = {{thin, unseen, oblique}};
    });
    for (int which = 0; which < 3; ++which) {
        q.found[which] = 0;
        for (std::size_t k = 0; k < counts.size; ++k) q.found[which] += counts[k].of[which];
    }
}

}  // namespace splat
