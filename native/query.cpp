// SPDX-License-Identifier: Apache-2.0
// A query in one sweep: all its channels are composited together, each summed as `composite`
// sums it, to the bit; a tile's pixels become picture, field and maps while they are at hand.
#include <cmath>

#include "sums.hpp"
#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr float least_alpha = 1e-6f;  // maps are divided by alpha, or by this
constexpr float luminance[3] = {0.299f, 0.587f, 0.114f};

// plane[c] += sum over the met entries of weight * value[c], for C channels of one unit.
template <int C>
inline void accumulate(int n, const float* weights, const uint8_t* met, const float* values,
                       float* planes, int pixel) {
    Vec acc[C];
    for (int c = 0; c < C; ++c) acc[c] = Vec::load(planes + c * tile_pixels + pixel);
    for (int k = 0; k < n; ++k) {
        const Vec w = Vec::load(weights + k * lanes);
        const float* value = values + met[k] * query_row;
        for (int c = 0; c < C; ++c) acc[c] = fma(w, Vec::all(value[c]), acc[c]);
    }
    for (int c = 0; c < C; ++c) acc[c].store(planes + c * tile_pixels + pixel);
}

// All channels of one unit; as many at a time as there are registers for.
inline void accumulate_all(int n, const float* weights, const uint8_t* met, const float* values,
                           float* planes, int pixel) {
#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
    accumulate<query_channels>(n, weights, met, values, planes, pixel);
#else
    constexpr int half = query_channels / 2;
    accumulate<half>(n, weights, met, values, planes, pixel);
    accumulate<half>(n, weights, met, values + half, planes + half * tile_pixels, pixel);
#endif
}

void sweep_rows(const View& view, const TileGeometry& tile, const float* rows, float* planes) {
    alignas(64) float local[batch_size * query_row];
    std::memset(planes, 0, query_channels * tile_pixels * sizeof(float));
    Batch batch;
    sweep_tile(
        view, tile, batch,
        [&](const Batch& b) {
            const float* row[batch_size];
            for (int e = 0; e < b.count; ++e) {
                row[e] =
                    rows + std::size_t(view.footprints[b.entries[e].footprint].rank) * query_row;
                __builtin_prefetch(row[e]);
            }
            for (int e = 0; e < b.count; ++e)
                std::memcpy(local + e * query_row, row[e], query_row * sizeof(float));
        },
        [&](int unit, int n, const float* weights, const uint8_t* met) {
            accumulate_all(n, weights, met, local, planes, unit_pixel(unit));
        });
}

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

typedef float Four __attribute__((vector_size(16)));
#if defined(__clang__)
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t FourPlaces __attribute__((vector_size(16)));
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, FourPlaces{i, j, k, l})
#endif

// A row of three planes as pixels, four at a time.
void interleave(const float* rgb, int columns, float* out) {
    int x = 0;
    for (; x + 4 <= columns; x += 4, out += 12) {
        Four r, g, b;
        std::memcpy(&r, rgb + x, sizeof(r));
        std::memcpy(&g, rgb + tile_pixels + x, sizeof(g));
        std::memcpy(&b, rgb + 2 * tile_pixels + x, sizeof(b));
        const Four low = SPLAT_PICK(r, g, 0, 4, 1, 5), high = SPLAT_PICK(r, g, 2, 6, 3, 7);
        const Four middle = SPLAT_PICK(low, b, 3, 5, 3, 5), end = SPLAT_PICK(high, b, 2, 3, 6, 7);
        const Four pixels[3] = {SPLAT_PICK(low, b, 0, 1, 4, 2),
                                SPLAT_PICK(middle, high, 0, 1, 4, 5),
                                SPLAT_PICK(end, end, 2, 0, 1, 3)};
        std::memcpy(out, pixels, sizeof(pixels));
    }
    for (; x < columns; ++x)
        for (int c = 0; c < 3; ++c) *out++ = rgb[c * tile_pixels + x];
}

void write_tile(const View& view, const TileGeometry& tile, const QueryRequest& q,
                const float* planes, const float* light) {
    const std::size_t width = view.camera.width, pixels = width * view.camera.height;
    const float* source[query_maps] = {
        planes + channel_one * tile_pixels, light, planes + channel_exposure * tile_pixels,
        planes + channel_angle * tile_pixels, planes + channel_spread * tile_pixels};
    const std::size_t bytes = tile.columns * sizeof(float);
    for (int row = 0; row < tile.rows; ++row) {
        const std::size_t out = std::size_t(tile.y + row) * width + tile.x;
        const int in = row * tile_size;
        interleave(planes + in, tile.columns, q.center + 3 * out);
        std::memcpy(q.field + out, planes + channel_field * tile_pixels + in, bytes);
        std::memcpy(q.depth + out, planes + channel_depth * tile_pixels + in, bytes);
        for (int map = 0; map < query_maps; ++map)
            std::memcpy(q.maps + map * pixels + out, source[map] + in, bytes);
    }
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
        sweep_rows(view, tile, rows.data, planes);
        finish_planes(q, planes, light);
        write_tile(view, tile, q, planes, light);
        moments[index] = moments_of(tile, planes);
    });
    merge_moments(view, moments, q.moments);
}

}  // namespace

const QueryKernels query_kernels = {pack_query, render, summarise_maps};

}  // namespace SPLAT_ISA
}  // namespace splat
