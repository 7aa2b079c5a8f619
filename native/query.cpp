// SPDX-License-Identifier: Apache-2.0
// A query in one sweep: all its channels are composited together, each summed as `composite`
// sums it, to the bit; a tile's pixels become picture, field and maps while they are at hand.
#include <cmath>

#include "rows.hpp"
#include "sums.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr float least_alpha = 1e-6f;  // maps are divided by alpha, or by this
constexpr float luminance[3] = {0.299f, 0.587f, 0.114f};

// What a tile adds to the moments.
struct TileMoments {
    double depth, depth_squares;  // sum, and sum of squares about the tile's own mean
    double field, residual;
};

// In place: colours on the background and clamped, maps divided by alpha, the field floored.
void finish_planes(const QueryRequest& q, float* planes, float* light) {
    const Vec zero = Vec::all(0.0f), one = Vec::all(1.0f), least = Vec::all(least_alpha);
    for (int at = 0; at < tile_pixels; at += lanes) {
        float* const p = planes + at;
        const Vec alpha = Vec::load(p + channel_one * tile_pixels), clear = one - alpha;
        Vec bright = zero;
        for (int c = 0; c < 3; ++c) {
            const Vec v = Vec::load(p + c * tile_pixels);
            const Vec shown = min(one, max(zero, fma(clear, Vec::all(q.background[c]), v)));
            shown.store(p + c * tile_pixels);
            bright = fma(Vec::all(luminance[c]), shown, bright);
        }
        bright.store(light + at);
        const Vec share = one / max(alpha, least);
        for (const int c :
             {channel_depth, channel_exposure, channel_angle, channel_spread, channel_residual})
            (share * Vec::load(p + c * tile_pixels)).store(p + c * tile_pixels);
        float* const field = p + channel_field * tile_pixels;
        max(Vec::all(q.field_floor), Vec::load(field)).store(field);
    }
}

void write_tile(const View& view, const TileGeometry& tile, const QueryRequest& q,
                const float* planes, const float* light) {
    const std::size_t pixels = std::size_t(view.camera.width) * view.camera.height;
    const float* source[query_maps] = {
        planes + channel_one * tile_pixels, light, planes + channel_exposure * tile_pixels,
        planes + channel_angle * tile_pixels, planes + channel_spread * tile_pixels};
    const TileWriter out(view, tile, query_channels);
    out.colours(planes, q.center);
    out.plane(planes + channel_field * tile_pixels, q.field);
    out.plane(planes + channel_depth * tile_pixels, q.depth);
    for (int map = 0; map < query_maps; ++map) out.plane(source[map], q.maps + map * pixels);
}

// The pixels of a border tile that lie in the image, one row after the other.
void close_ranks(const TileGeometry& tile, float* plane) {
    if (tile.columns == tile_size) return;
    for (int row = 1; row < tile.rows; ++row)
        std::memmove(plane + row * tile.columns, plane + row * tile_size,
                     tile.columns * sizeof(float));
}

TileMoments moments_of(const TileGeometry& tile, float* planes) {
    float* depth = planes + channel_depth * tile_pixels;
    float* field = planes + channel_field * tile_pixels;
    float* residual = planes + channel_residual * tile_pixels;
    for (float* plane : {depth, field, residual}) close_ranks(tile, plane);
    const int count = tile.rows * tile.columns;
    TileMoments m;
    m.depth = sum_of(depth, count);
    const Vec mean = Vec::all(static_cast<float>(m.depth / count));
    m.depth_squares = sum_of(depth, count, [&](Vec v) { return (v - mean) * (v - mean); });
    m.field = sum_of(field, count);
    m.residual = sum_of(residual, count);
    return m;
}

// Moments of the image from those of its tiles, in their order.
void merge_moments(const View& view, const Array<TileMoments>& tiles, double moments[4]) {
    double count = 0, mean = 0, squares = 0, field = 0, residual = 0;
    for (std::size_t k = 0; k < tiles.size; ++k) {
        const TileGeometry tile(view, static_cast<int>(k));
        const double more = double(tile.rows) * tile.columns, both = count + more;
        const double ahead_by = tiles[k].depth / more - mean;
        squares += tiles[k].depth_squares + ahead_by * ahead_by * count * more / both;
        mean += ahead_by * more / both;
        field += tiles[k].field;
        residual += tiles[k].residual;
        count = both;
    }
    moments[0] = mean;
    moments[1] = std::sqrt(squares / count);
    moments[2] = field / count;
    moments[3] = residual / count;
}

void render(const View& view, QueryRequest& q) {
    Array<float> rows;
    rows.resize(view.drawn.size * query_row);
    pack_query_rows(view, q.gaussians, rows.data);
    Array<TileMoments> moments;
    moments.resize(std::size_t(view.tiles_x) * view.tiles_y);
    parallel_for(static_cast<int>(moments.size), [&](int index, int) {
        alignas(64) float planes[query_channels * tile_pixels], light[tile_pixels];
        const TileGeometry tile(view, index);
        sweep_rows<query_channels, query_row>(view, tile, rows.data, planes);
        finish_planes(q, planes, light);
        write_tile(view, tile, q, planes, light);
        moments[index] = moments_of(tile, planes);
    });
    merge_moments(view, moments, q.moments);
}

}  // namespace

const QueryKernels query_kernels = {pack_query, render, summarise_maps, median, picture};

}  // namespace SPLAT_ISA
}  // namespace splat
