// SPDX-License-Identifier: Apache-2.0
// A picture in one sweep: colours, opacity and depth, finished tile by tile.
#include "partials.hpp"
#include "rows.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

enum PictureChannel { red, one = 3, depth, channels };
constexpr int row = 8;                // floats from one packed row to the next
constexpr float least_alpha = 1e-6f;  // less than this is no hit

void pack(const View& view, const PictureRequest& q, float* rows) {
    shade_rows(view, q.means, q.sh, q.bases, row, rows + red);
    depth_rows(view, row, rows + depth);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int n = begin; n < end; ++n) rows[std::size_t(n) * row + one] = 1.0f;
    });
}

// In place: colours on the background, depth divided by alpha.
void finish(const PictureRequest& q, float* planes) {
    const Vec least = Vec::all(least_alpha);
    for (int at = 0; at < tile_pixels; at += lanes) {
        float* const p = planes + at;
        const Vec alpha = Vec::load(p + one * tile_pixels), clear = Vec::all(1.0f) - alpha;
        for (int c = 0; c < 3; ++c) {
            float* const plane = p + c * tile_pixels;
            fma(clear, Vec::all(q.background[c]), Vec::load(plane)).store(plane);
        }
        const Vec share = Vec::load(p + depth * tile_pixels) / max(alpha, least);
        keep(share, alpha > least).store(p + depth * tile_pixels);
    }
}

}  // namespace

void picture(const View& view, const PictureRequest& q) {
    Array<float> rows;
    rows.resize(view.drawn.size * row);
    pack(view, q, rows.data);
    parallel_for(view.tiles_x * view.tiles_y, [&](int index, int) {
        alignas(64) float planes[channels * tile_pixels];
        const TileGeometry tile(view, index);
        sweep_rows<channels, row>(view, tile, rows.data, planes);
        finish(q, planes);
        const TileWriter out(view, tile, channels);
        out.colours(planes, q.rgb);
        out.plane(planes + one * tile_pixels, q.alpha);
        out.plane(planes + depth * tile_pixels, q.depth);
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
