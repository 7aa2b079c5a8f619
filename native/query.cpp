// SPDX-License-Identifier: Apache-2.0
// A query in one sweep: colour, one, depth, log exposure, support angle, spread, residual field
// and residual summary of each drawn Gaussian, composited together. Each channel is summed as
// `composite` sums it, to the bit; a tile's pixels become picture, field and maps while they
// are still at hand.
#include "harmonics.hpp"
#include "partials.hpp"
#include "sums.hpp"
#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int group = Vec::width;  // Gaussians that are packed at a time
constexpr int fetched = 16;        // rows of traits fetched before they are needed
constexpr int max_field_bases = 16;
constexpr int row_size = 16;  // floats of a packed row, of which ten are used: one cache line
constexpr float pi = 3.14159265358979f;
constexpr float least_alpha = 1e-6f;  // maps are divided by alpha, or by this
constexpr float luminance[3] = {0.299f, 0.587f, 0.114f};

void camera_centre(const CameraModel& camera, double centre[3]) {
    const double *R = camera.rotation, *t = camera.shift;
    for (int k = 0; k < 3; ++k) centre[k] = -(R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2]);
}

// `b` where the mask holds, `a` elsewhere, up to the rounding of their difference.
inline Vec choose(Vec a, Vec b, Mask m) { return a + keep(b - a, m); }

// Angle of a vector (c, s) with s >= 0, in [0, pi]; pi for the zero vector: what no view saw
// is as far off as can be. An arctangent is exact to rounding at all angles, where the
// arccosine of c alone loses half of its digits near 0 and pi. Cephes' polynomial.
inline Vec angle_of(Vec c, Vec s) {
    const Vec one = Vec::all(1.0f), tan_eighth = Vec::all(0.41421356237f);
    const Vec size = abs(c), high = max(s, size), least = Vec::all(1e-30f);
    const Vec slope = min(s, size) / max(high, least);
    const Mask steep = slope > tan_eighth;
    const Vec x = choose(slope, (slope - one) / (slope + one), steep), z = x * x;
    Vec p = Vec::all(8.05374449538e-2f);
    p = fma(p, z, Vec::all(-1.38776856032e-1f));
    p = fma(p, z, Vec::all(1.99777106478e-1f));
    p = fma(p, z, Vec::all(-3.33329491539e-1f));
    const Vec octant = keep(Vec::all(pi / 4), steep) + fma(p * z, x, x);
    const Vec quadrant = choose(octant, Vec::all(pi / 2) - octant, s > size);
    const Vec half = choose(quadrant, Vec::all(pi) - quadrant, c < Vec::all(0.0f));
    return choose(half, Vec::all(pi), high < least);
}

// Some drawn Gaussians, one lane each; lanes from the last one on repeat it.
struct Group {
    Vec offset[3];  // from the Gaussian to the camera
    Vec trait[fixed_traits];
    Vec coefficient[max_field_bases];
};

void load_group(const QueryGaussians& q, const double centre[3], const uint32_t* drawn, int count,
                Group& g) {
    alignas(64) float block[3 + fixed_traits + max_field_bases][group];
    const int columns = fixed_traits + q.field_bases;
    for (int k = 0; k < group; ++k) {
        const std::size_t i = drawn[std::min(k, count - 1)];
        const float* row = q.traits + i * columns;
        // Differences are taken in double, they may be small.
        for (int c = 0; c < 3; ++c)
            block[c][k] = static_cast<float>(centre[c] - q.means[3 * i + c]);
        for (int c = 0; c < columns; ++c) block[3 + c][k] = row[c];
    }
    for (int c = 0; c < 3; ++c) g.offset[c] = Vec::load(block[c]);
    for (int c = 0; c < fixed_traits; ++c) g.trait[c] = Vec::load(block[3 + c]);
    for (int c = 0; c < q.field_bases; ++c)
        g.coefficient[c] = Vec::load(block[3 + fixed_traits + c]);
}

// What depends on the direction towards the camera: support angle and field.
void look(const Group& g, int bases, Vec& angle, Vec& field) {
    Vec x = g.offset[0], y = g.offset[1], z = g.offset[2];
    // Scaled by the largest part first, so that no square leaves the range of float.
    const Vec one = Vec::all(1.0f), largest = max(max(abs(x), abs(y)), abs(z));
    const Vec unit = one / max(largest, Vec::all(1e-37f));
    x = x * unit, y = y * unit, z = z * unit;
    const Vec r = one / sqrt(fma(x, x, fma(y, y, z * z)));
    x = x * r, y = y * r, z = z * r;

    const Vec* seen = g.trait + 3;
    const Vec cosine = fma(x, seen[0], fma(y, seen[1], z * seen[2]));
    const Vec a = y * seen[2] - z * seen[1];
    const Vec b = z * seen[0] - x * seen[2];
    const Vec c = x * seen[1] - y * seen[0];
    angle = angle_of(cosine, sqrt(fma(a, a, fma(b, b, c * c))));

    Vec basis[max_field_bases];
    harmonics(x, y, z, bases, basis);
    field = Vec::all(0.0f);
    for (int k = 0; k < bases; ++k) field = fma(basis[k], g.coefficient[k], field);
}

// One row per drawn Gaussian, in ascending order of the Gaussians.
void pack_rows(const View& view, const QueryGaussians& q, float* rows) {
    double centre[3];
    camera_centre(view.camera, centre);
    Array<float> colours, depths;
    colours.resize(std::size_t(view.count) * 3);  // those of `shade`, to the bit
    depths.resize(view.drawn.size);
    shade(view, q.means, q.sh, q.bases, q.bases, colours.data);
    for_drawn_ranges(view, [&](int begin, int end) {  // footprints lie front to back
        for (int n = begin; n < end; ++n)
            depths[view.footprints[n].rank] = view.footprints[n].depth;
    });
    const std::size_t columns = fixed_traits + q.field_bases;
    for_drawn_ranges(view, [&](int begin, int end) {
        alignas(64) float angles[group], fields[group], fixed[3][group];
        Group g;
        for (int n = begin; n < end; n += group) {
            const uint32_t* drawn = view.drawn.data + n;
            const int count = std::min(group, end - n);
            for (int k = n + fetched; k < std::min(n + fetched + group, end); ++k)
                __builtin_prefetch(q.traits + view.drawn[k] * columns);
            load_group(q, centre, drawn, count, g);
            Vec angle, field;
            look(g, q.field_bases, angle, field);
            angle.store(angles);
            field.store(fields);
            for (int c = 0; c < 3; ++c) g.trait[c].store(fixed[c]);
            for (int k = 0; k < count; ++k) {
                const float* colour = colours.data + std::size_t(drawn[k]) * 3;
                float* row = rows + std::size_t(n + k) * row_size;
                for (int c = 0; c < 3; ++c) row[channel_rgb + c] = colour[c];
                row[channel_one] = 1.0f;
                row[channel_depth] = depths[n + k];
                row[channel_exposure] = fixed[0][k];
                row[channel_angle] = angles[k];
                row[channel_spread] = fixed[1][k];
                row[channel_field] = fields[k];
                row[channel_residual] = fixed[2][k];
            }
        }
    });
}

// plane[c] += sum over the met entries of weight * value[c], for C channels of one unit.
template <int C>
inline void accumulate(int n, const float* weights, const uint8_t* met, const float* values,
                       float* planes, int pixel) {
    Vec acc[C];
    for (int c = 0; c < C; ++c) acc[c] = Vec::load(planes + c * tile_pixels + pixel);
    for (int k = 0; k < n; ++k) {
        const Vec w = Vec::load(weights + k * lanes);
        const float* value = values + met[k] * row_size;
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
    alignas(64) float local[batch_size * row_size];
    std::memset(planes, 0, query_channels * tile_pixels * sizeof(float));
    Batch batch;
    sweep_tile(
        view, tile, batch,
        [&](const Batch& b) {
            const float* row[batch_size];
            for (int e = 0; e < b.count; ++e) {
                row[e] =
                    rows + std::size_t(view.footprints[b.entries[e].footprint].rank) * row_size;
                __builtin_prefetch(row[e]);
            }
            for (int e = 0; e < b.count; ++e)
                std::memcpy(local + e * row_size, row[e], row_size * sizeof(float));
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
        Vec shade = zero;
        for (int c = 0; c < 3; ++c) {
            const Vec v = Vec::load(p + c * tile_pixels);
            const Vec shown = min(one, max(zero, fma(clear, Vec::all(q.background[c]), v)));
            shown.store(p + c * tile_pixels);
            shade = fma(Vec::all(luminance[c]), shown, shade);
        }
        shade.store(light + at);
        const Vec share = one / max(alpha, least);
        for (const int c :
             {channel_depth, channel_exposure, channel_angle, channel_spread, channel_residual})
            (share * Vec::load(p + c * tile_pixels)).store(p + c * tile_pixels);
        float* const field = p + channel_field * tile_pixels;
        max(Vec::all(q.field_floor), Vec::load(field)).store(field);
    }
}

// A row of three planes as pixels.
void interleave(const float* rgb, int columns, float* out) {
    const float *r = rgb, *g = rgb + tile_pixels, *b = rgb + 2 * tile_pixels;
    if (columns == tile_size) {  // a fixed length is worked off in vectors
        for (int x = 0; x < tile_size; ++x, out += 3) out[0] = r[x], out[1] = g[x], out[2] = b[x];
        return;
    }
    for (int x = 0; x < columns; ++x, out += 3) out[0] = r[x], out[1] = g[x], out[2] = b[x];
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

void pack(const View& view, const QueryGaussians& q, float* values) {
    Array<float> rows;
    rows.resize(view.drawn.size * row_size);
    pack_rows(view, q, rows.data);
    fill_zero(values, std::size_t(view.count) * query_channels);
    for (std::size_t n = 0; n < view.drawn.size; ++n)
        std::copy_n(rows.data + n * row_size, query_channels,
                    values + std::size_t(view.drawn[n]) * query_channels);
}

void render(const View& view, QueryRequest& q) {
    Array<float> rows;
    rows.resize(view.drawn.size * row_size);
    pack_rows(view, q.gaussians, rows.data);
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

const QueryKernels query_kernels = {pack, render, summarise_maps};

}  // namespace SPLAT_ISA
}  // namespace splat
