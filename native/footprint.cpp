// SPDX-License-Identifier: Apache-2.0
// How much of the image each Gaussian could cover if nothing stood before it: the sum of its
// alpha over its pixels. Beside the sum of the weights it tells how visible it is.
#include "partials.hpp"
#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

// Alpha of one entry added up over the pixels of its tile that lie inside the image.
float tile_alpha(const View& view, const TileGeometry& tile, const Entry& entry,
                 const float* inside) {
    const TileExponent t(view.footprints[entry.footprint], tile.centre_x(), tile.centre_y());
    Vec total = Vec::all(0.0f);
    for (int part = 0; part < parts; ++part) {
        const Vec lx = Vec::load(tile_axis + part * lanes) - Vec::all(t.origin_x);
        const Vec q0 = fma(lx, fma(Vec::all(t.a), lx, Vec::all(t.gx)), Vec::all(t.u0));
        const Vec q1 = fma(Vec::all(t.b), lx, Vec::all(t.gy));
        for (uint32_t rows = unit_bits(entry.rows) >> (16 * part) & 0xffffu; rows;
             rows &= rows - 1) {
            const int row = __builtin_ctz(rows);
            const Vec ly = Vec::all(tile_axis[row] - t.origin_y);
            const Vec counted = Vec::load(inside + unit_pixel(16 * part + row));
            total = fma(unit_alpha(q0, q1, Vec::all(t.c), ly), counted, total);
        }
    }
    return sum(total);
}

}  // namespace

void footprint(const View& view, float* sums) {
    Partials partials(view, 1);
    parallel_for(view.tiles_x * view.tiles_y, [&](int index, int) {
        const TileGeometry tile(view, index);
        alignas(64) float inside[tile_pixels] = {};
        for (int row = 0; row < tile.rows; ++row)
            std::fill_n(inside + row * tile_size, tile.columns, 1.0f);
        for (uint32_t at = tile.first; at < tile.last; ++at) {
            const Entry& entry = view.entries[at];
            *partials.row(entry.emission) = tile_alpha(view, tile, entry, inside);
        }
    });
    sum_partials(view, partials, sums);
}

}  // namespace SPLAT_ISA
}  // namespace splat
