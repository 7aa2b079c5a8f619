// SPDX-License-Identifier: Apache-2.0
// Every pixel is taken to where its surface lies in each witness and compared there. A vector
// holds several pixels of a row. Pixels are independent of each other, so any number of threads
// gives the same bits.
#include "witnesses.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "isa.hpp"
#include "texels.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr float hidden = 0.08f;     // share of the depth by which a surface may lie in front
constexpr float closest = 1e-4f;    // smallest depth
constexpr float softening = 0.05f;  // a witness weighs 1 / (distance + softening)^2
constexpr float coarseness = 0.2f;  // what seeing the point from twice as far adds, doubled
constexpr float largest_float = std::numeric_limits<float>::max();
constexpr int channels = 6;  // three colours, three residuals
constexpr int lanes = Vec::width;

inline Vec dot(const float* r, const Vec at[3], float shift) {
    return fma(Vec::all(r[0]), at[0],
               fma(Vec::all(r[1]), at[1], fma(Vec::all(r[2]), at[2], Vec::all(shift))));
}

inline Vec inner(const Vec a[3], const Vec b[3]) {
    return fma(a[0], b[0], fma(a[1], b[1], a[2] * b[2]));
}

inline Vec largest_of(const Vec* three) {
    return max(abs(three[0]), max(abs(three[1]), abs(three[2])));
}

// A place along one axis of a witness: the pixel before it, the next one, edges repeated, and how
// far it is from the first to the second.
struct Between {
    Places before, after;
    Vec far;
    Between(Vec place, int size, int bytes) {
        const Vec last = Vec::all(static_cast<float>(size - 1)), one = Vec::all(1.0f);
        const Vec x = min(max(place - Vec::all(0.5f), Vec::all(0.0f)), last);
        const Places first = Places::truncated(x);
        const Vec whole = first.values();
        before = first.times(bytes);
        after = Places::truncated(min(whole + one, last)).times(bytes);
        far = x - whole;
    }
    Vec nearer(Vec first, Vec second) const {  // whole numbers, so nothing is rounded
        return first + keep(second - first, far >= Vec::all(0.5f));
    }
};

// Some pixels of one row, and the sums over their witnesses.
struct Stretch {
    Vec at[3], squared;  // in the query's camera
    Mask known;          // pixels that show something
    Vec picture[3];
    Vec count = Vec::all(0.0f), weight = count, nearest = Vec::all(largest_float);
    Vec first[channels], second[channels], size[2], smallest = nearest;

    Stretch(const WitnessRequest& q, int row, int column) {
        alignas(64) float depth[lanes] = {}, x[lanes], colour[3][lanes] = {};
        const std::size_t pixel = std::size_t(row) * q.width + column;
        const int columns = std::min(lanes, q.width - column);
        std::memcpy(depth, q.depth + pixel, columns * sizeof(float));
        for (int k = 0; k < lanes; ++k)
            x[k] = (static_cast<float>(column + k) + 0.5f - q.cx) / q.fx;
        for (int k = 0; k < columns; ++k)
            for (int c = 0; c < 3; ++c) colour[c][k] = q.picture[3 * (pixel + k) + c];
        for (int c = 0; c < 3; ++c) picture[c] = Vec::load(colour[c]);
        for (int c = 0; c < channels; ++c) first[c] = second[c] = Vec::all(0.0f);
        size[0] = size[1] = Vec::all(0.0f);
        at[2] = Vec::load(depth);
        at[0] = Vec::load(x) * at[2];
        at[1] = Vec::all((static_cast<float>(row) + 0.5f - q.cy) / q.fy) * at[2];
        squared = inner(at, at);
        known = at[2] > Vec::all(closest);
    }

    void ask(const Witness& w) {
        const Vec z = dot(w.rotation + 6, at, w.shift[2]), none = Vec::all(0.0f);
        const Vec share = Vec::all(1.0f) / z;
        Vec u = fma(dot(w.rotation, at, w.shift[0]) * share, Vec::all(w.fx), Vec::all(w.cx));
        Vec v = fma(dot(w.rotation + 3, at, w.shift[1]) * share, Vec::all(w.fy), Vec::all(w.cy));
        const Mask inside = known & (z > Vec::all(closest)) & (u >= none) & (v >= none) &
                            (u < Vec::all(static_cast<float>(w.width))) &
                            (v < Vec::all(static_cast<float>(w.height)));
        if (!any(inside)) return;
        u = keep(u, inside), v = keep(v, inside);  // what is outside is read at the first pixel
        const Between across(u, w.width, witness_bytes), down(v, w.height, w.stride);
        // Two neighbours of a row at a time; the second one weighs nothing beyond the last column.
        const Texels top(w.pixels, down.before + across.before);
        const Texels bottom(w.pixels, down.after + across.before);
        const Mask seen = inside & open(w, across, down, top, bottom, z);
        if (!any(seen)) return;
        const Vec one = keep(Vec::all(1.0f), seen), weights = weigh(w, share, seen, one);
        Vec found[channels];
        for (int c = 0; c < channels; ++c) found[c] = none;
        const Vec all = Vec::all(1.0f), up = all - down.far, left = all - across.far;
        blend(top, left * up, across.far * up, found);
        blend(bottom, left * down.far, across.far * down.far, found);
        for (int c = 0; c < channels; ++c) {
            if (c < 3) found[c] = found[c] - picture[c];
            first[c] = fma(weights, found[c], first[c]);
            second[c] = fma(weights * found[c], found[c], second[c]);
        }
        const Vec clash = largest_of(found);
        size[0] = fma(weights, clash, size[0]);
        size[1] = fma(weights, largest_of(found + 3), size[1]);
        smallest = min(smallest, clash + elsewhere(one));
    }

    void write(float* out) const;

private:
    static Vec elsewhere(Vec one) { return Vec::all(largest_float) * (Vec::all(1.0f) - one); }

    // Whether nothing hides the point at the nearest pixel of the witness.
    static Mask open(const Witness& w, const Between& across, const Between& down,
                     const Texels& top, const Texels& bottom, Vec z) {
        const Vec one = Vec::all(1.0f);
        const Vec code = down.nearer(across.nearer(top.bits<24, 8>(), top.bits<72, 8>()),
                                     across.nearer(bottom.bits<24, 8>(), bottom.bits<72, 8>()));
        const Vec log2_depth = fma(code - one, Vec::all(w.log2_step), Vec::all(w.log2_near));
        return (code >= one) & (exp2(log2_depth) > Vec::all(1 - hidden) * z);
    }

    // Adds shares of two neighbours.
    static void blend(const Texels& both, Vec left, Vec right, Vec* found) {
        const Vec unit = Vec::all(1 / 255.0f);
        add<0>(both, left, left * unit, found);
        add<48>(both, right, right * unit, found);
    }

    template <int First>
    static void add(const Texels& from, Vec share, Vec part, Vec* found) {
        const Vec red = residual(from.bits<First + 32, 5>(), witness_residual_5);
        const Vec green = residual(from.bits<First + 37, 6>(), witness_residual_6);
        const Vec blue = residual(from.bits<First + 43, 5>(), witness_residual_5);
        found[0] = fma(from.bits<First, 8>(), part, found[0]);
        found[1] = fma(from.bits<First + 8, 8>(), part, found[1]);
        found[2] = fma(from.bits<First + 16, 8>(), part, found[2]);
        found[3] = fma(red, share, found[3]);
        found[4] = fma(green, share, found[4]);
        found[5] = fma(blue, share, found[5]);
    }

    static Vec residual(Vec code, const WitnessResidual& r) {
        const Vec k = code - Vec::all(r.middle);
        return k * fma(k * k, Vec::all(r.bend), Vec::all(r.slope));
    }

    // Weight of a witness at each pixel; zero where it does not see the point. Counts it.
    Vec weigh(const Witness& w, Vec share, Mask seen, Vec one) {
        const Vec away[3] = {at[0] - Vec::all(w.centre[0]), at[1] - Vec::all(w.centre[1]),
                             at[2] - Vec::all(w.centre[2])};
        const Vec none = Vec::all(0.0f);
        const Vec cosine = inner(at, away) / sqrt(squared * inner(away, away));
        const Vec chord = sqrt(max(Vec::all(2.0f) - Vec::all(2.0f) * cosine, none));
        const Vec coarse = max(Vec::all(1.0f) - at[2] * share, none);
        const Vec distance = keep(fma(Vec::all(coarseness), coarse, chord), seen);
        const Vec near = one / (distance + Vec::all(softening)), weights = near * near;
        count = count + one;
        weight = weight + weights;
        nearest = min(nearest, distance + elsewhere(one));
        return weights;
    }
};

// The maps of these pixels, `lanes` floats each; zero where there is no witness.
void Stretch::write(float* out) const {
    const Vec none = Vec::all(0.0f), one = Vec::all(1.0f);
    const Mask told = count > none;
    const Vec share = one / max(weight, Vec::all(1e-30f));
    Vec mean[channels], deviation[channels];
    for (int c = 0; c < channels; ++c) {
        mean[c] = first[c] * share;
        deviation[c] = sqrt(max(fnma(mean[c], mean[c], second[c] * share), none));
    }
    const auto put = [&](int map, Vec value) { keep(value, told).store(out + map * lanes); };
    put(witness_count, count);
    put(witness_distance, nearest);
    put(witness_residual, size[1] * share);
    put(witness_clash, size[0] * share);
    put(witness_least_clash, smallest);
    put(witness_bias, largest_of(mean));
    put(witness_spread, largest_of(deviation));
    for (int c = 0; c < 3; ++c) put(witness_drift + c, mean[3 + c]);
    put(witness_scatter, largest_of(deviation + 3));
}

constexpr float least_log = 2e-3f;  // floor of the logarithms
constexpr float far_away = 1.0f;    // distance of a witness where there is none
constexpr float asked = 8.0f;       // witnesses that a count of one means
constexpr float most_log2 = 30 * static_cast<float>(log2_e);

// The features of some pixels, which the guide's weights multiply. Where there is no witness, the
// field stands for what one would say.
struct Features {
    static constexpr int logs = 9;
    Vec log[logs];  // to the base 2: eight maps, and the distance
    Vec count;
    Mask silent;

    Features(Vec field, const float* maps) {
        const auto map = [&](int k) { return Vec::load(maps + k * lanes); };
        count = map(witness_count);
        silent = Vec::all(0.0f) >= count;
        const Vec drift[3] = {map(witness_drift), map(witness_drift + 1), map(witness_drift + 2)};
        const Vec instead = keep(field, silent);
        const Vec said[logs] = {field,
                                map(witness_residual) + instead,
                                map(witness_clash) + instead,
                                map(witness_least_clash) + instead,
                                map(witness_bias) + instead,
                                map(witness_spread) + instead,
                                largest_of(drift) + instead,
                                map(witness_scatter) + instead,
                                map(witness_distance) + keep(Vec::all(far_away), silent)};
        for (int k = 0; k < logs; ++k) log[k] = log2(max(said[k], Vec::all(least_log)));
    }

    // (weights . features + shift) times a factor and log2(e).
    Vec weighed(const float* weights, float shift, float factor) const {
        const float plain = factor * static_cast<float>(log2_e);
        Vec total = fma(count, Vec::all(weights[8] * plain / asked), Vec::all(shift * plain));
        total = total + keep(Vec::all(weights[10] * plain), silent);
        for (int k = 0; k < 8; ++k) total = fma(log[k], Vec::all(weights[k] * factor), total);
        return fma(log[8], Vec::all(weights[9] * factor), total);
    }
};

inline Vec bounded(Vec log2_value) {
    return min(max(log2_value, Vec::all(-most_log2)), Vec::all(most_log2));
}

// The scale of pixels (eq:guided).
Vec scale_of(const GuideRequest& q, Vec field, const float* maps) {
    const Features features(field, maps);
    const Vec one = Vec::all(1.0f), two = Vec::all(2.0f);
    Vec total = features.weighed(q.weights, q.intercept, 1.0f);
    for (int k = 0; k < q.unit_count; ++k) {
        const GuideUnit& unit = q.units[k];
        const Vec doubled = bounded(features.weighed(unit.weights, unit.bias, 2.0f));
        const Vec tangent = one - two / (one + exp2(doubled));  // tanh, hyperbolic
        total = fma(tangent, Vec::all(unit.share * static_cast<float>(log2_e)), total);
    }
    return exp2(bounded(total)) + Vec::all(q.floor);
}

// The share of the mean residual that corrects the picture, in place of those three maps.
void write_correction(const GuideRequest& q, float* maps) {
    const Vec distance = max(Vec::load(maps + witness_distance * lanes), Vec::all(least_log));
    const Vec count = Vec::load(maps + witness_count * lanes);
    Vec odds = fma(count, Vec::all(q.gate[0] / asked), Vec::all(q.gate[2]));
    odds = odds * Vec::all(static_cast<float>(log2_e));
    odds = fma(log2(distance), Vec::all(q.gate[1]), odds);
    const Vec one = Vec::all(1.0f), trust = one / (one + exp2(Vec::all(0.0f) - bounded(odds)));
    for (int c = 0; c < 3; ++c) {
        float* drift = maps + (witness_drift + c) * lanes;
        (Vec::load(drift) * trust).store(drift);
    }
}

void write_scale(const GuideRequest& q, std::size_t pixel, int columns, const float* maps,
                 float* scale) {
    alignas(64) float field[lanes];
    for (int k = 0; k < lanes; ++k) field[k] = q.field[pixel + std::min(k, columns - 1)];
    scale_of(q, Vec::load(field), maps).store(scale);
    std::memcpy(q.scale + pixel, scale, columns * sizeof(float));
}

}  // namespace

void ask_witnesses(const WitnessRequest& q) {
    const std::size_t plane = std::size_t(q.height) * q.width;
    parallel_for(q.height, [&](int row, int) {
        alignas(64) float maps[witness_maps * lanes], scale[lanes];
        double sum = 0;
        uint32_t told = 0;
        for (int column = 0; column < q.width; column += lanes) {
            Stretch pixels(q, row, column);
            if (any(pixels.known))
                for (int k = 0; k < q.count; ++k) pixels.ask(q.witnesses[k]);
            pixels.write(maps);
            const std::size_t pixel = std::size_t(row) * q.width + column;
            const int columns = std::min(lanes, q.width - column);
            const auto copy = [&](int map, float* out) {
                std::memcpy(out + pixel, maps + map * lanes, columns * sizeof(float));
            };
            for (int map = 0; q.maps && map < witness_maps; ++map) copy(map, q.maps + map * plane);
            if (!q.guide) continue;
            write_scale(*q.guide, pixel, columns, maps, scale);
            if (q.correction) write_correction(*q.guide, maps);
            for (int c = 0; q.correction && c < 3; ++c)
                copy(witness_drift + c, q.correction + c * plane);
            for (int k = 0; k < columns; ++k) sum += scale[k];
            for (int k = 0; k < columns; ++k) told += maps[witness_count * lanes + k] > 0;
        }
        if (!q.guide) return;
        q.guide->sums[row] = sum;
        q.guide->told[row] = told;
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
