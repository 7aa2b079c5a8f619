// SPDX-License-Identifier: Apache-2.0
// Every pixel is taken to where its surface lies in each witness and compared there. A vector
// holds several pixels while rays are traced, and the channels of one pixel while it is compared.
// Pixels are independent of each other, so any number of threads gives the same bits.
#include "witnesses.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "isa.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr float hidden = 0.08f;     // share of the depth by which a surface may lie in front
constexpr float closest = 1e-4f;    // smallest depth
constexpr float softening = 0.05f;  // a witness weighs 1 / (distance + softening)^2
constexpr float coarseness = 0.2f;  // what seeing the point from twice as far adds, doubled
constexpr int channels = 6;         // three colours, three residuals

constexpr int lanes = Vec::width;  // pixels at a time

// The eight channels of one pixel of one witness.
struct Eight {
#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
    __m256 v;
    static Eight all(float x) { return {_mm256_set1_ps(x)}; }
    static Eight load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Eight of_bytes(const uint8_t* p) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))};
    }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    Eight times(Eight b) const { return {_mm256_mul_ps(v, b.v)}; }
    Eight times_plus(Eight b, Eight c) const { return {_mm256_fmadd_ps(v, b.v, c.v)}; }
    Eight times_minus(Eight b, Eight c) const { return {_mm256_fmsub_ps(v, b.v, c.v)}; }
    Eight most(Eight b) const { return {_mm256_max_ps(v, b.v)}; }
    Eight least(Eight b) const { return {_mm256_min_ps(v, b.v)}; }
    Eight size() const { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v)}; }
    Eight root() const { return {_mm256_sqrt_ps(v)}; }
    // The largest of each channel and the two after it.
    Eight largest() const {
        const __m256i next = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 7);
        const __m256 two = _mm256_max_ps(v, _mm256_permutevar8x32_ps(v, next));
        return {_mm256_max_ps(two, _mm256_permutevar8x32_ps(two, next))};
    }
#else
    float v[8];
#define SPLAT_EIGHT(expression)                      \
    Eight r;                                         \
    for (int c = 0; c < 8; ++c) r.v[c] = expression; \
    return r
    static Eight all(float x) { SPLAT_EIGHT(x); }
    static Eight load(const float* p) { SPLAT_EIGHT(p[c]); }
    static Eight of_bytes(const uint8_t* p) { SPLAT_EIGHT(static_cast<float>(p[c])); }
    void store(float* p) const { std::memcpy(p, v, sizeof(v)); }
    Eight times(const Eight& b) const { SPLAT_EIGHT(v[c] * b.v[c]); }
    Eight times_plus(const Eight& b, const Eight& d) const { SPLAT_EIGHT(v[c] * b.v[c] + d.v[c]); }
    Eight times_minus(const Eight& b, const Eight& d) const { SPLAT_EIGHT(v[c] * b.v[c] - d.v[c]); }
    Eight most(const Eight& b) const { SPLAT_EIGHT(v[c] > b.v[c] ? v[c] : b.v[c]); }
    Eight least(const Eight& b) const { SPLAT_EIGHT(v[c] < b.v[c] ? v[c] : b.v[c]); }
    Eight size() const { SPLAT_EIGHT(std::fabs(v[c])); }
    Eight root() const { SPLAT_EIGHT(std::sqrt(v[c])); }
    Eight largest() const {
        SPLAT_EIGHT(std::max(v[c], std::max(v[std::min(c + 1, 7)], v[std::min(c + 2, 7)])));
    }
#undef SPLAT_EIGHT
#endif
};

// Colour and residual between four pixels, edges repeated, in units of a byte.
Eight blend(const Witness& w, float u, float v) {
    const float x = u - 0.5f, y = v - 0.5f;
    const int x0 = static_cast<int>(x + 1) - 1, y0 = static_cast<int>(y + 1) - 1;  // floors
    const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
    const std::size_t stride = std::size_t(w.width) * witness_bytes;
    const uint8_t* const top = w.pixels + std::max(y0, 0) * stride;
    const uint8_t* const bottom = w.pixels + std::min(y0 + 1, w.height - 1) * stride;
    const int left = std::max(x0, 0) * witness_bytes;
    const int right = std::min(x0 + 1, w.width - 1) * witness_bytes;
    const Eight first = Eight::of_bytes(top + left).times(Eight::all((1 - fx) * (1 - fy)));
    const Eight second = Eight::of_bytes(top + right).times_plus(Eight::all(fx * (1 - fy)), first);
    const Eight third =
        Eight::of_bytes(bottom + left).times_plus(Eight::all((1 - fx) * fy), second);
    return Eight::of_bytes(bottom + right).times_plus(Eight::all(fx * fy), third);
}

float depth_at(const Witness& w, float u, float v) {
    const std::size_t pixel = std::size_t(static_cast<int>(v)) * w.width + static_cast<int>(u);
    uint16_t upper;
    std::memcpy(&upper, w.pixels + pixel * witness_bytes + channels, sizeof(upper));
    const uint32_t bits = static_cast<uint32_t>(upper) << 16;
    float depth;
    std::memcpy(&depth, &bits, sizeof(depth));
    return depth;
}

inline Vec dot(const float* r, const Vec at[3], float shift) {
    return fma(Vec::all(r[0]), at[0],
               fma(Vec::all(r[1]), at[1], fma(Vec::all(r[2]), at[2], Vec::all(shift))));
}

inline Vec inner(const Vec a[3], const Vec b[3]) {
    return fma(a[0], b[0], fma(a[1], b[1], a[2] * b[2]));
}

// Some pixels of one row, and the sums over their witnesses.
struct Stretch {
    Vec at[3];       // in the query's camera
    uint32_t known;  // pixels that show something
    Vec count = Vec::all(0.0f), weight = count,
        nearest = Vec::all(std::numeric_limits<float>::max());
    Eight zero[lanes];  // what is subtracted: the query's picture, and the residuals' zero
    Eight first[lanes], second[lanes], size[lanes], smallest[lanes];

    Stretch(const WitnessRequest& q, int row, int column) {
        alignas(64) float depth[lanes] = {}, x[lanes];
        const std::size_t pixel = std::size_t(row) * q.width + column;
        const int columns = std::min(lanes, q.width - column);
        std::memcpy(depth, q.depth + pixel, columns * sizeof(float));
        for (int k = 0; k < lanes; ++k) {
            x[k] = (static_cast<float>(column + k) + 0.5f - q.cx) / q.fx;
            float from[8] = {};
            if (k < columns) std::memcpy(from, q.picture + 3 * (pixel + k), 3 * sizeof(float));
            for (int c = 3; c < channels; ++c) from[c] = 128.0f / witness_residual_steps;
            zero[k] = Eight::load(from);
            first[k] = second[k] = size[k] = Eight::all(0.0f);
            smallest[k] = Eight::all(std::numeric_limits<float>::max());
        }
        at[2] = Vec::load(depth);
        at[0] = Vec::load(x) * at[2];
        at[1] = Vec::all((static_cast<float>(row) + 0.5f - q.cy) / q.fy) * at[2];
        known = bits(at[2] > Vec::all(closest));
    }

    void ask(const Witness& w) {
        const Vec z = dot(w.rotation + 6, at, w.shift[2]), none = Vec::all(0.0f);
        const Vec share = Vec::all(1.0f) / z;
        const Vec u = fma(dot(w.rotation, at, w.shift[0]) * share, Vec::all(w.fx), Vec::all(w.cx));
        const Vec v =
            fma(dot(w.rotation + 3, at, w.shift[1]) * share, Vec::all(w.fy), Vec::all(w.cy));
        uint32_t seen = known & bits((z > Vec::all(closest)) & (u >= none) & (v >= none) &
                                     (u < Vec::all(static_cast<float>(w.width))) &
                                     (v < Vec::all(static_cast<float>(w.height))));
        if (!seen) return;
        alignas(64) float us[lanes], vs[lanes], weights[lanes], depth[lanes] = {};
        u.store(us);
        v.store(vs);
        for (uint32_t rest = seen; rest; rest &= rest - 1) {
            const int k = __builtin_ctz(rest);
            depth[k] = depth_at(w, us[k], vs[k]);
        }
        const Mask open = Vec::load(depth) > Vec::all(1 - hidden) * z;
        seen &= bits(open);
        if (!seen) return;
        weigh(w, share, seen).store(weights);
        for (uint32_t rest = seen; rest; rest &= rest - 1) {
            const int k = __builtin_ctz(rest);
            add(k, blend(w, us[k], vs[k]), Eight::all(weights[k]));
        }
    }

    void write(float* out) const;

private:
    // Weight of a witness at each pixel it sees; counts it there.
    Vec weigh(const Witness& w, Vec share, uint32_t seen) {
        alignas(64) float chosen[lanes];
        for (int k = 0; k < lanes; ++k) chosen[k] = static_cast<float>(seen >> k & 1);
        const Vec one = Vec::load(chosen), none = Vec::all(0.0f);
        const Mask here = one > none;
        const Vec away[3] = {at[0] - Vec::all(w.centre[0]), at[1] - Vec::all(w.centre[1]),
                             at[2] - Vec::all(w.centre[2])};
        const Vec cosine = inner(at, away) / sqrt(inner(at, at) * inner(away, away));
        const Vec chord = sqrt(max(Vec::all(2.0f) - Vec::all(2.0f) * cosine, none));
        const Vec coarse = max(Vec::all(1.0f) - at[2] * share, none);
        const Vec distance = fma(Vec::all(coarseness), coarse, chord);
        const Vec near = Vec::all(1.0f) / (distance + Vec::all(softening));
        count = count + one;
        weight = weight + keep(near * near, here);
        const Vec elsewhere = Vec::all(std::numeric_limits<float>::max()) * (Vec::all(1.0f) - one);
        nearest = min(nearest, elsewhere + keep(distance, here));
        return near * near;
    }

    void add(int k, Eight bytes, Eight w) {
        alignas(32) static constexpr float units[8] = {1 / 255.0f,
                                                       1 / 255.0f,
                                                       1 / 255.0f,
                                                       1 / witness_residual_steps,
                                                       1 / witness_residual_steps,
                                                       1 / witness_residual_steps,
                                                       0,
                                                       0};
        const Eight value = bytes.times_minus(Eight::load(units), zero[k]);
        const Eight weighed = w.times(value), largest = value.size().largest();
        first[k] = w.times_plus(value, first[k]);
        second[k] = weighed.times_plus(value, second[k]);
        size[k] = w.times_plus(largest, size[k]);
        smallest[k] = smallest[k].least(largest);
    }
};

// The maps of these pixels, `lanes` floats each.
void Stretch::write(float* out) const {
    alignas(64) float counts[lanes], weights[lanes], distances[lanes];
    count.store(counts);
    weight.store(weights);
    nearest.store(distances);
    for (int k = 0; k < lanes; ++k) {
        float* const at = out + k;
        for (int map = 0; map < witness_maps; ++map) at[map * lanes] = 0.0f;
        if (counts[k] == 0) continue;
        const Eight share = Eight::all(1.0f / weights[k]), mean = first[k].times(share);
        const Eight spread = second[k].times(share).times_plus(
            Eight::all(1.0f), mean.times(mean).times(Eight::all(-1.0f)));
        float means[8], bias[8], deviation[8], sizes[8], least[8];
        mean.store(means);
        mean.size().largest().store(bias);
        spread.most(Eight::all(0.0f)).root().largest().store(deviation);
        size[k].times(share).store(sizes);
        smallest[k].store(least);
        at[witness_count * lanes] = counts[k];
        at[witness_distance * lanes] = distances[k];
        at[witness_residual * lanes] = sizes[3];
        at[witness_clash * lanes] = sizes[0];
        at[witness_least_clash * lanes] = least[0];
        at[witness_bias * lanes] = bias[0];
        at[witness_spread * lanes] = deviation[0];
        for (int c = 0; c < 3; ++c) at[(witness_drift + c) * lanes] = means[3 + c];
        at[witness_scatter * lanes] = deviation[3];
    }
}

}  // namespace

void ask_witnesses(const WitnessRequest& q) {
    const std::size_t plane = std::size_t(q.height) * q.width;
    parallel_for(q.height, [&](int row, int) {
        alignas(64) float maps[witness_maps * lanes];
        for (int column = 0; column < q.width; column += lanes) {
            Stretch pixels(q, row, column);
            for (int k = 0; pixels.known && k < q.count; ++k) pixels.ask(q.witnesses[k]);
            pixels.write(maps);
            float* const out = q.maps + std::size_t(row) * q.width + column;
            const std::size_t bytes = std::min(lanes, q.width - column) * sizeof(float);
            for (int map = 0; map < witness_maps; ++map)
                std::memcpy(out + map * plane, maps + map * lanes, bytes);
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
