// SPDX-License-Identifier: Apache-2.0
// The median of one map: of an even number of values, the lower one of the two in the middle.
#include <cstring>

#include "isa.hpp"
#include "percentile.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr std::size_t block = 8192;
constexpr int samples = 1024;

struct Divided {
    int64_t below, inside;
};

}  // namespace

float median(const float* values, std::size_t count) {
    const int blocks = static_cast<int>((count + block - 1) / block);
    Array<float> kept;  // the values of a block that lie inside, from its first place on
    Array<Divided> parts;
    kept.resize(count);
    parts.resize(blocks);
    float sample[samples];
    sample_sorted(count, samples, sample, [&](uint64_t at) { return values[at]; });
    for (const Bracket bracket : {bracket_of(sample, samples, 0.5), Bracket()}) {
        parallel_for(blocks, [&](int k, int) {
            const std::size_t begin = block * k;
            Divided& part = parts[k] = Divided();
            divide_values(values + begin, static_cast<int>(std::min(block, count - begin)), bracket,
                          part.below, part.inside, kept.data + begin);
        });
        int64_t rank = (static_cast<int64_t>(count) + 1) / 2, inside = 0;
        for (int k = 0; k < blocks; ++k) {
            std::memmove(kept.data + inside, kept.data + block * k,
                         parts[k].inside * sizeof(float));
            inside += parts[k].inside;
            rank -= parts[k].below;
        }
        if (0 < rank && rank <= inside) return select(kept.data, inside, rank, bracket);
    }
    return std::numeric_limits<float>::quiet_NaN();
}

}  // namespace SPLAT_ISA
}  // namespace splat
