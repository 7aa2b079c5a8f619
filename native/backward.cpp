// SPDX-License-Identifier: Apache-2.0
// The full adjoint: from a gradient of the image to values, 2D means, conics and opacities,
// and on to the raw parameters.
//
// Front to back again, with nothing stored per (pixel, Gaussian). With G the image gradient,
//   rest_i = <G, colour still to come behind i>   (starts at <G, image>)
//   dL/dalpha_i = T_i <G, v_i> - rest_i / (1 - alpha_i),
// and v = alpha dL/dalpha is the gradient of log alpha, in which everything else is linear.
#include <cstring>

#include "partials.hpp"
#include "projection.hpp"
#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

// Sums of one (tile, Gaussian): v, v dx, v dy, v dx^2, v dx dy, v dy^2, |d mean_x|, |d mean_y|,
// then the values' gradients.
constexpr int moments = 8;

struct PixelGradients {
    const float* planes;  // [channels][16 x 16] gradient of the image
    float* rest;          // [16 x 16]
};

// C > 0: that many channels, known at compile time; 0: `channels` of them.
template <int C, bool Absolute>
inline void backward_entry(const View& view, const TileGeometry& tile, const Entry& entry,
                           TileState& state, const PixelGradients& pixels, const float* value,
                           int channels, float* grad_value_lanes, float* out) {
    const int count = C > 0 ? C : channels;
    const uint32_t visited = unit_bits(entry.rows) & state.open;
    std::memset(out, 0, (moments + count) * sizeof(float));
    if (!visited) return;
    if (&entry + ahead < view.entries.data + view.entries.size) fetch(view, (&entry)[ahead]);
    const TileExponent t(view.footprints[entry.footprint], tile.centre_x(), tile.centre_y());
    const Vec c = Vec::all(t.c), zero = Vec::all(0.0f), one = Vec::all(1.0f);
    const Vec cap = Vec::all(float(alpha_cap));
    Vec colour[C > 0 ? C : 1], grad_value[C > 0 ? C : 1];
    if (C > 0)
        for (int k = 0; k < C; ++k) colour[k] = Vec::all(value[k]), grad_value[k] = zero;
    else
        for (int k = 0; k < count; ++k) zero.store(grad_value_lanes + k * lanes);
    Vec s0 = zero, sx = zero, sy = zero, sxx = zero, sxy = zero, syy = zero, abs_x = zero,
        abs_y = zero;
    for (int part = 0; part < parts; ++part) {
        uint32_t rows = visited >> (16 * part) & 0xffffu;
        if (!rows) continue;
        const Vec lx = Vec::load(tile_axis + part * lanes) - Vec::all(t.origin_x);
        const Vec q0 = fma(lx, fma(Vec::all(t.a), lx, Vec::all(t.gx)), Vec::all(t.u0));
        const Vec q1 = fma(Vec::all(t.b), lx, Vec::all(t.gy));
        Vec v0 = zero, v1 = zero, v2 = zero;  // sums of v, v ly, v ly^2 per column
        for (; rows; rows &= rows - 1) {
            const int row = __builtin_ctz(rows), unit = 16 * part + row;
            const int pixel = row * tile_size + part * lanes;
            const Vec ly = Vec::all(tile_axis[row] - t.origin_y);
            const Vec T = Vec::load(state.T[unit]);
            const Vec u = fma(ly, fma(c, ly, q1), q0);
            const Mask seen = u >= Vec::all(log2_alpha_floor);
            const Vec raw = keep(exp2(u), seen), alpha = min(raw, cap);
            Vec next = T;
            bool open;
            const Vec weight = blend(alpha, next, open);
            next.store(state.T[unit]);
            if (!open) state.open &= ~(1u << unit);

            Vec shade = zero;
            if (C > 0) {
                for (int k = 0; k < C; ++k) {
                    const Vec g = Vec::load(pixels.planes + k * tile_pixels + pixel);
                    shade = fma(colour[k], g, shade);
                    grad_value[k] = fma(weight, g, grad_value[k]);
                }
            } else {
                for (int k = 0; k < count; ++k) {
                    const Vec g = Vec::load(pixels.planes + k * tile_pixels + pixel);
                    shade = fma(Vec::all(value[k]), g, shade);
                    float* sum = grad_value_lanes + k * lanes;
                    fma(weight, g, Vec::load(sum)).store(sum);
                }
            }
            // A pixel that is full has nothing to come: its rest is zero, and so is v.
            const Vec lit = weight * shade;
            const Vec rest = keep(Vec::load(pixels.rest + pixel) - lit, next > zero);
            rest.store(pixels.rest + pixel);
            const Vec v = keep(lit - alpha * rest / (one - alpha), raw < cap);
            v0 = v0 + v;
            const Vec vy = v * ly;
            v1 = v1 + vy;
            v2 = fma(vy, ly, v2);
            if (Absolute) {
                const Vec slope_x =
                    fma(Vec::all(2 * t.a), lx, fma(Vec::all(t.b), ly, Vec::all(t.gx)));
                const Vec slope_y = fma(Vec::all(2 * t.c), ly, q1);
                abs_x = abs_x + abs(v * slope_x);
                abs_y = abs_y + abs(v * slope_y);
            }
        }
        s0 = s0 + v0;
        sx = fma(v0, lx, sx);
        sy = sy + v1;
        sxx = fma(v0 * lx, lx, sxx);
        sxy = fma(v1, lx, sxy);
        syy = syy + v2;
    }
    // From offsets to the tile's origin to offsets to the mean.
    const Vec columns[8] = {s0, sx, sy, sxx, sxy, syy, abs_x, abs_y};
    float sums[8];
    sum_eight(columns, sums);
    const double m0 = sums[0], mx = sums[1], my = sums[2], dx = t.dx, dy = t.dy;
    out[0] = static_cast<float>(m0);
    out[1] = static_cast<float>(mx + dx * m0);
    out[2] = static_cast<float>(my + dy * m0);
    out[3] = static_cast<float>(sums[3] + 2 * dx * mx + dx * dx * m0);
    out[4] = static_cast<float>(sums[4] + dx * my + dy * mx + dx * dy * m0);
    out[5] = static_cast<float>(sums[5] + 2 * dy * my + dy * dy * m0);
    if (Absolute) {
        out[6] = float(ln_2) * sums[6];
        out[7] = float(ln_2) * sums[7];
    }
    if (C > 0)
        for (int k = 0; k < C; ++k) out[moments + k] = sum(grad_value[k]);
    else
        for (int k = 0; k < count; ++k)
            out[moments + k] = sum(Vec::load(grad_value_lanes + k * lanes));
}

template <int C, bool Absolute>
void backward_tiles(const View& view, const ViewGradients& request, const Partials& partials) {
    const int channels = request.channels;
    const std::size_t need = std::size_t(channels) * (2 * tile_pixels + lanes) + tile_pixels;
    for_tiles(view, need, [&](const TileGeometry& tile, float* grad) {
        float* image = grad + std::size_t(channels) * tile_pixels;
        float* rest = image + std::size_t(channels) * tile_pixels;
        float* lane_sums = rest + tile_pixels;
        read_tile<C>(view, tile, request.grad_image, channels, grad);
        read_tile<C>(view, tile, request.image, channels, image);
        for (int p = 0; p < tile_pixels; ++p) rest[p] = 0;
        for (int k = 0; k < channels; ++k)
            for (int p = 0; p < tile_pixels; ++p)
                rest[p] += grad[k * tile_pixels + p] * image[k * tile_pixels + p];
        TileState state;
        for (uint32_t at = tile.first; at < tile.last; ++at) {
            const Entry& entry = view.entries[at];
            const auto value_of = [&](const Entry& e) {
                return request.values +
                       std::size_t(view.footprints[e.footprint].gaussian) * channels;
            };
            const float* value = value_of(entry);
            if (at + ahead / 2 < tile.last) {
                const Entry& later = view.entries[at + ahead / 2];
                __builtin_prefetch(value_of(later));
                __builtin_prefetch(partials.row(later.emission), 1);
            }
            backward_entry<C, Absolute>(view, tile, entry, state, {grad, rest}, value, channels,
                                        lane_sums, partials.row(entry.emission));
        }
    });
}

// Totals of one Gaussian's partial rows; its values' gradients go to their place at once.
void total_moments(const View& view, const ViewGradients& request, const Partials& partials,
                   int rank, int lane, Real* total) {
    float* values = request.grad_values + int64_t(view.drawn[rank]) * request.channels;
    for (int c = 0; c < request.channels; ++c) values[c] = 0;
    for (uint32_t n = view.emission_start[rank]; n < view.emission_start[rank + 1]; ++n) {
        const float* row = partials.row(n);
        for (int m = 0; m < moments; ++m) total[m][lane] += row[m];
        for (int c = 0; c < request.channels; ++c) values[c] += row[moments + c];
    }
}

// From the image plane to raw parameters, for `count` drawn Gaussians from `rank` on.
void finish(const View& view, const RawSplats& splats, const ViewGradients& request,
            const Partials& partials, int rank, int count) {
    Real total[moments] = {};
    int64_t index[real_lanes];
    for (int k = 0; k < real_lanes; ++k) {
        index[k] = view.drawn[rank + std::min(k, count - 1)];
        if (k < count) total_moments(view, request, partials, rank + k, k, total);
    }
    Projection p;
    project(view.camera, FieldOfView(view.camera), splats, index, p);
    ProjectionGradient d;
    d.mean_x = p.conic_xx * total[1] + p.conic_xy * total[2];
    d.mean_y = p.conic_xy * total[1] + p.conic_yy * total[2];
    d.conic_xx = -0.5 * total[3];
    d.conic_xy = -total[4];
    d.conic_yy = -0.5 * total[5];
    d.log_opacity = total[0];
    RawGradient raw;
    project_backward(view.camera, p, d, raw);
    for (int k = 0; k < count; ++k) {
        const int64_t i = index[k];
        for (int c = 0; c < 3; ++c) {
            request.grad_means[3 * i + c] = static_cast<float>(raw.means[c][k]);
            request.grad_log_scales[3 * i + c] = static_cast<float>(raw.log_scales[c][k]);
        }
        for (int c = 0; c < 4; ++c)
            request.grad_quats[4 * i + c] = static_cast<float>(raw.quats[c][k]);
        request.grad_logit_opacities[i] = static_cast<float>(raw.logit[k]);
        request.grad_means2d[2 * i] = static_cast<float>(d.mean_x[k]);
        request.grad_means2d[2 * i + 1] = static_cast<float>(d.mean_y[k]);
        if (!request.abs_grad_means2d) continue;
        request.abs_grad_means2d[2 * i] = static_cast<float>(total[6][k]);
        request.abs_grad_means2d[2 * i + 1] = static_cast<float>(total[7][k]);
    }
}

void clear_undrawn(const View& view, const ViewGradients& request) {
    zero_undrawn(view, request.grad_values, request.channels);
    zero_undrawn(view, request.grad_means, 3);
    zero_undrawn(view, request.grad_quats, 4);
    zero_undrawn(view, request.grad_log_scales, 3);
    zero_undrawn(view, request.grad_logit_opacities, 1);
    zero_undrawn(view, request.grad_means2d, 2);
    if (request.abs_grad_means2d) zero_undrawn(view, request.abs_grad_means2d, 2);
}

}  // namespace

void backward(const View& view, const RawSplats& splats, const ViewGradients& request) {
    const Partials partials(view, moments + request.channels);
    const bool absolute = request.abs_grad_means2d != nullptr;
    if (request.channels == 3)
        absolute ? backward_tiles<3, true>(view, request, partials)
                 : backward_tiles<3, false>(view, request, partials);
    else
        absolute ? backward_tiles<0, true>(view, request, partials)
                 : backward_tiles<0, false>(view, request, partials);

    clear_undrawn(view, request);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int k = begin; k < end; k += real_lanes)
            finish(view, splats, request, partials, k, std::min(real_lanes, end - k));
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
