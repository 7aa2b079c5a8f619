// SPDX-License-Identifier: Apache-2.0
// Compositing as a GPU kernel would be ported plainly: one pixel at a time, one Gaussian at
// a time, expf, no row lists. It is the yardstick of the benchmark and a second opinion in
// the tests; everything else of this "instruction set" is the portable one's.
#include <cmath>

#include "view.hpp"

namespace splat {
namespace {

void composite_pixel(const View& view, const Entry* first, const Entry* last, int row, int column,
                     const float* values, int channels, float* out) {
    const float px = column + 0.5f, py = row + 0.5f;
    float T = 1.0f;
    for (int c = 0; c < channels; ++c) out[c] = 0.0f;
    for (const Entry* e = first; e != last; ++e) {
        const Footprint& f = view.footprints[e->footprint];
        const float dx = px - float(f.mean_x), dy = py - float(f.mean_y);
        const float u =
            f.log2_opacity + float(f.a) * dx * dx + float(f.b) * dx * dy + float(f.c) * dy * dy;
        const float alpha = std::fmin(float(alpha_cap), std::exp(u * float(ln_2)));
        if (alpha < float(alpha_floor)) continue;
        const float next = T * (1.0f - alpha);
        if (next <= float(stop_transmittance)) break;
        const float* value = values + std::size_t(f.gaussian) * channels;
        for (int c = 0; c < channels; ++c) out[c] += alpha * T * value[c];
        T = next;
    }
}

void composite(const View& view, const float* values, int channels, float* image) {
    parallel_for(view.tiles_x * view.tiles_y, [&](int tile, int) {
        const int x0 = tile % view.tiles_x * tile_size, y0 = tile / view.tiles_x * tile_size;
        const Entry* first = view.entries.data + view.tile_start[tile];
        const Entry* last = view.entries.data + view.tile_start[tile + 1];
        for (int row = y0; row < y0 + tile_size && row < view.camera.height; ++row)
            for (int column = x0; column < x0 + tile_size && column < view.camera.width; ++column)
                composite_pixel(view, first, last, row, column, values, channels,
                                image + (std::size_t(row) * view.camera.width + column) * channels);
    });
}

}  // namespace

const Kernels* kernels_scalar() {
    static const Kernels table = [] {
        Kernels k = *kernels_portable();
        k.name = "scalar";
        k.width = 1;
        k.composite = composite;
        return k;
    }();
    return &table;
}

}  // namespace splat
