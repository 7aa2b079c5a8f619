// SPDX-License-Identifier: Apache-2.0
// Every pixel is taken to where its surface lies in each witness and compared there. Pixels are
// independent of each other, so any number of threads gives the same bits.
#include "witnesses.hpp"

#include <cmath>
#include <cstring>

#include "isa.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr float hidden = 0.08f;     // share of the depth by which a surface may lie in front
constexpr float closest = 1e-4f;    // smallest depth
constexpr float softening = 0.05f;  // a witness weighs 1 / (distance + softening)^2
constexpr float coarseness = 0.2f;  // what seeing the point from twice as far adds, doubled
constexpr int lanes_used = 6;       // three colours, three residuals
constexpr int lanes_held = 8;

struct Sample {
    float value[lanes_held];  // photograph minus query, then signed residual
    float distance;
};

float depth_at(const uint8_t* pixel) {
    uint16_t upper;
    std::memcpy(&upper, pixel + lanes_used, sizeof(upper));
    const uint32_t bits = static_cast<uint32_t>(upper) << 16;
    float depth;
    std::memcpy(&depth, &bits, sizeof(depth));
    return depth;
}

// Colour and residual between four pixels, edges repeated, in units of a byte.
void blend(const Witness& w, float u, float v, float* out) {
    const float x = u - 0.5f, y = v - 0.5f;
    const float left = std::floor(x), top = std::floor(y);
    const float fx = x - left, fy = y - top;
    const int x0 = static_cast<int>(left), y0 = static_cast<int>(top);
    const auto column = [&](int at) { return at < 0 ? 0 : at >= w.width ? w.width - 1 : at; };
    const auto row = [&](int at) { return at < 0 ? 0 : at >= w.height ? w.height - 1 : at; };
    const std::size_t stride = std::size_t(w.width) * witness_bytes;
    const uint8_t* const rows[2] = {w.pixels + row(y0) * stride, w.pixels + row(y0 + 1) * stride};
    const int columns[2] = {column(x0) * witness_bytes, column(x0 + 1) * witness_bytes};
    const float weight[4] = {(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy};
    for (int c = 0; c < lanes_held; ++c) out[c] = 0.0f;
    for (int tap = 0; tap < 4; ++tap) {
        uint8_t bytes[lanes_held];
        std::memcpy(bytes, rows[tap / 2] + columns[tap % 2], lanes_held);
        for (int c = 0; c < lanes_held; ++c) out[c] += weight[tap] * static_cast<float>(bytes[c]);
    }
}

// What a witness says of the point at `at` in the query's camera; false if it does not see it.
bool ask(const Witness& w, const float* at, const float* scale, const float* zero, Sample& s) {
    const float* r = w.rotation;
    const float z = r[6] * at[0] + r[7] * at[1] + r[8] * at[2] + w.shift[2];
    if (!(z > closest)) return false;
    const float share = 1.0f / z;
    const float x = r[0] * at[0] + r[1] * at[1] + r[2] * at[2] + w.shift[0];
    const float y = r[3] * at[0] + r[4] * at[1] + r[5] * at[2] + w.shift[1];
    const float u = x * share * w.fx + w.cx, v = y * share * w.fy + w.cy;
    if (!(u >= 0 && u < w.width && v >= 0 && v < w.height)) return false;
    const std::size_t pixel = std::size_t(static_cast<int>(v)) * w.width + static_cast<int>(u);
    if (!(depth_at(w.pixels + pixel * witness_bytes) > (1 - hidden) * z)) return false;
    const float away[3] = {at[0] - w.centre[0], at[1] - w.centre[1], at[2] - w.centre[2]};
    const float along = at[0] * away[0] + at[1] * away[1] + at[2] * away[2];
    const float length = (at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) *
                         (away[0] * away[0] + away[1] * away[1] + away[2] * away[2]);
    const float chord = std::sqrt(std::fmax(0.0f, 2 - 2 * along / std::sqrt(length)));
    s.distance = chord + coarseness * std::fmax(0.0f, 1 - at[2] * share);
    blend(w, u, v, s.value);
    for (int c = 0; c < lanes_held; ++c) s.value[c] = s.value[c] * scale[c] - zero[c];
    return true;
}

float largest(const float* values) {
    return std::fmax(std::fmax(std::fabs(values[0]), std::fabs(values[1])), std::fabs(values[2]));
}

// Sums over the witnesses of one pixel.
struct Sums {
    float count = 0, weight = 0, nearest = 0, residual = 0, clash = 0, least = 0;
    float first[lanes_held] = {}, second[lanes_held] = {};

    void add(const Sample& s) {
        const float near = 1.0f / (s.distance + softening), w = near * near;
        const float clash_here = largest(s.value);
        nearest = count > 0 ? std::fmin(nearest, s.distance) : s.distance;
        least = count > 0 ? std::fmin(least, clash_here) : clash_here;
        count += 1;
        weight += w;
        clash += w * clash_here;
        residual += w * largest(s.value + 3);
        for (int c = 0; c < lanes_held; ++c) {
            const float weighed = w * s.value[c];
            first[c] += weighed;
            second[c] += weighed * s.value[c];
        }
    }

    void write(float* out, std::size_t plane) const {
        for (int map = 0; map < witness_maps; ++map) out[map * plane] = 0.0f;
        if (count == 0) return;
        const float share = 1.0f / weight;
        float mean[lanes_held], deviation[lanes_held];
        for (int c = 0; c < lanes_held; ++c) {
            mean[c] = first[c] * share;
            deviation[c] = std::sqrt(std::fmax(0.0f, second[c] * share - mean[c] * mean[c]));
        }
        out[witness_count * plane] = count;
        out[witness_distance * plane] = nearest;
        out[witness_residual * plane] = residual * share;
        out[witness_clash * plane] = clash * share;
        out[witness_least_clash * plane] = least;
        out[witness_bias * plane] = largest(mean);
        out[witness_spread * plane] = largest(deviation);
        for (int c = 0; c < 3; ++c) out[(witness_drift + c) * plane] = mean[3 + c];
        out[witness_scatter * plane] = largest(deviation + 3);
    }
};

}  // namespace

void ask_witnesses(const WitnessRequest& q) {
    const std::size_t plane = std::size_t(q.height) * q.width;
    parallel_for(q.height, [&](int row, int) {
        const float down = (row + 0.5f - q.cy) / q.fy;
        alignas(32) float scale[lanes_held] = {}, zero[lanes_held] = {};
        for (int c = 0; c < 3; ++c) {
            scale[c] = 1.0f / 255.0f;
            scale[3 + c] = 1.0f / witness_residual_steps;
            zero[3 + c] = 128.0f / witness_residual_steps;
        }
        for (int column = 0; column < q.width; ++column) {
            const std::size_t pixel = std::size_t(row) * q.width + column;
            const float depth = q.depth[pixel];
            Sums sums;
            if (depth > closest) {
                const float at[3] = {(column + 0.5f - q.cx) / q.fx * depth, down * depth, depth};
                for (int c = 0; c < 3; ++c) zero[c] = q.picture[3 * pixel + c];
                for (int k = 0; k < q.count; ++k) {
                    Sample sample;
                    if (ask(q.witnesses[k], at, scale, zero, sample)) sums.add(sample);
                }
            }
            sums.write(q.maps + pixel, plane);
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
