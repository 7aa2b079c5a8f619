// SPDX-License-Identifier: Apache-2.0
// The linear operator of a view: composite (A), scatter (A transposed), normal (both).
#include <cstring>

#include "kept.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int chunk_channels = 8;  // accumulators held in registers at a time

// Calls f with a number of channels as a compile-time constant.
template <class F>
inline void with_channels(int n, F&& f) {
    switch (n) {
        case 1: return f(std::integral_constant<int, 1>());
        case 2: return f(std::integral_constant<int, 2>());
        case 3: return f(std::integral_constant<int, 3>());
        case 4: return f(std::integral_constant<int, 4>());
        case 5: return f(std::integral_constant<int, 5>());
        case 6: return f(std::integral_constant<int, 6>());
        case 7: return f(std::integral_constant<int, 7>());
        default: return f(std::integral_constant<int, 8>());
    }
}

// Channels in groups of nearly equal size, at most eight each.
template <class F>
inline void for_channel_groups(int channels, F&& f) {
    const int groups = (channels + chunk_channels - 1) / chunk_channels;
    for (int k = 0; k < groups; ++k) {
        const int begin = channels * k / groups, end = channels * (k + 1) / groups;
        with_channels(end - begin, [&](auto width) { f(begin, width); });
    }
}

// plane[c] += sum over the met entries of weight * value[c], for C channels of one unit.
template <int C>
inline void accumulate(int n, const float* weights, const uint8_t* met, const float* values,
                       int stride, float* planes, int pixel) {
    Vec acc[C];
    for (int c = 0; c < C; ++c) acc[c] = Vec::load(planes + c * tile_pixels + pixel);
    for (int k = 0; k < n; ++k) {
        const Vec w = Vec::load(weights + k * lanes);
        const float* value = values + met[k] * stride;
        for (int c = 0; c < C; ++c) acc[c] = fma(w, Vec::all(value[c]), acc[c]);
    }
    for (int c = 0; c < C; ++c) acc[c].store(planes + c * tile_pixels + pixel);
}

// Calls f with the numbers of channels that are asked for most (one map, a picture, a query) as
// compile-time constants; others as 0, which means: look at the number.
template <class F>
inline void with_common(int channels, F&& f) {
    switch (channels) {
        case 1: return f(std::integral_constant<int, 1>());
        case 3: return f(std::integral_constant<int, 3>());
        case 10: return f(std::integral_constant<int, 10>());
        default: return f(std::integral_constant<int, 0>());
    }
}

template <int C>
void gather_values(const View& view, const Batch& batch, const float* values, int channels,
                   float* out) {
    if (C > 0) channels = C;
    for (int e = 0; e < batch.count; ++e) {
        const uint32_t gaussian = view.footprints[batch.entries[e].footprint].gaussian;
        const float* in = values + std::size_t(gaussian) * channels;
        for (int c = 0; c < channels; ++c) out[e * channels + c] = in[c];
    }
}

// An image larger than this is written past the caches, which could not hold it anyway: that
// saves reading every line of it first.
constexpr std::size_t streamed_bytes = 8u << 20;

template <int C>
void write_row(const float* in, int columns, int channels, float* out) {
    if (C > 0) channels = C;
    for (int column = 0; column < columns; ++column)
        for (int c = 0; c < channels; ++c) *out++ = in[c * tile_pixels + column];
}

template <int C>
void write_tile(const View& view, const TileGeometry& tile, const float* planes, int channels,
                float* image) {
    if (C > 0) channels = C;
    const std::size_t width = view.camera.width, height = view.camera.height;
    const std::size_t stride = width * channels;
    float* out = image + tile.y * stride + std::size_t(tile.x) * channels;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(out) | stride * sizeof(float)) % 64 == 0;
    const bool stream = C > 0 && aligned && tile.columns == tile_size &&
                        height * stride * sizeof(float) >= streamed_bytes;
    alignas(64) float line[tile_size * (C > 0 ? C : 1)];
    for (int row = 0; row < tile.rows; ++row, out += stride, planes += tile_size) {
        if (!stream) {
            write_row<C>(planes, tile.columns, channels, out);
            continue;
        }
        write_row<C>(planes, tile_size, C, line);
        for (int i = 0; i < tile_size * C; i += lanes) Vec::load(line + i).stream(out + i);
    }
    if (stream) end_stream();
}

// Zero at the pixels of a border tile that lie outside the image.
void clear_outside(const TileGeometry& tile, int channels, float* planes) {
    if (tile.rows == tile_size && tile.columns == tile_size) return;
    for (int c = 0; c < channels; ++c)
        for (int row = 0; row < tile_size; ++row)
            for (int column = row < tile.rows ? tile.columns : 0; column < tile_size; ++column)
                planes[c * tile_pixels + row * tile_size + column] = 0.0f;
}

// The weights of one entry over its units, in order of the bits of `visited`.
struct EntryWeights {
    alignas(64) float w[units * lanes];
    uint32_t visited;
};

// sum over the visited units of weight * plane[c], for C channels.
template <int C>
inline void project_weights(const float* weights, uint32_t visited, const float* planes,
                            float* out) {
    Vec acc[C];
    for (int c = 0; c < C; ++c) acc[c] = Vec::all(0.0f);
    for (; visited; visited &= visited - 1, weights += lanes) {
        const int pixel = unit_pixel(__builtin_ctz(visited));
        const Vec w = Vec::load(weights);
        for (int c = 0; c < C; ++c)
            acc[c] = fma(w, Vec::load(planes + c * tile_pixels + pixel), acc[c]);
    }
    for (int c = 0; c < C; ++c) out[c] = sum(acc[c]);
}

template <int C>
void composite_tiles(const View& view, const float* values, int channels, float* image) {
    const std::size_t need = std::size_t(channels) * (tile_pixels + batch_size);
    for_tiles(view, need, [&](const TileGeometry& tile, float* planes) {
        float* local = planes + std::size_t(channels) * tile_pixels;
        std::memset(planes, 0, std::size_t(channels) * tile_pixels * sizeof(float));
        Batch batch;
        sweep_tile(
            view, tile, batch,
            [&](const Batch& b) { gather_values<C>(view, b, values, channels, local); },
            [&](int unit, int n, const float* weights, const uint8_t* met) {
                for_channel_groups(channels, [&](int c0, auto width) {
                    accumulate<width.value>(n, weights, met, local + c0, channels,
                                            planes + c0 * tile_pixels, unit_pixel(unit));
                });
            });
        write_tile<C>(view, tile, planes, channels, image);
    });
}

// Where an entry's sums go, fetched before it is needed.
inline void fetch_row(const View& view, const TileGeometry& tile, uint32_t at,
                      const Partials& partials) {
    if (at + ahead / 2 >= tile.last) return;
    __builtin_prefetch(partials.row(view.entries[at + ahead / 2].emission), 1);
}

template <int C>
struct HeldPixels {
    Vec plane[C];
};

// C of the channels: composited, and summed again to the partial rows' columns from `first` on.
template <int C>
void normal_tiles(const View& view, const float* values, int channels, const Partials& partials,
                  int first) {
    for_kept_tiles(view, [&](const TileGeometry& tile, Kept& kept) {
        alignas(64) float planes[C * tile_pixels] = {};
        composite_tile<C>(
            view, tile,
            [&](const Footprint& f, float* value) {
                std::memcpy(value, values + std::size_t(f.gaussian) * channels, C * sizeof(float));
            },
            kept, planes);
        clear_outside(tile, C, planes);
        scatter_tile<C>(
            view, tile, kept,
            [&](int pixel) {
                HeldPixels<C> held;
                for (int c = 0; c < C; ++c)
                    held.plane[c] = Vec::load(planes + c * tile_pixels + pixel);
                return held;
            },
            [](Vec w, const HeldPixels<C>& held, Vec* sums) {
                for (int c = 0; c < C; ++c) sums[c] = fma(w, held.plane[c], sums[c]);
            },
            partials, first);
    });
}

}  // namespace

void composite(const View& view, const float* values, int channels, float* image) {
    with_common(channels,
                [&](auto common) { composite_tiles<common.value>(view, values, channels, image); });
}

void scatter(const View& view, const float* image, int channels, float* values) {
    Partials partials(view, channels);
    const std::size_t need = std::size_t(channels) * tile_pixels;
    for_tiles(view, need, [&](const TileGeometry& tile, float* planes) {
        read_tile(view, tile, image, channels, planes);
        TileState state;
        EntryWeights weights;
        for (uint32_t at = tile.first; at < tile.last; ++at) {
            const Entry& entry = view.entries[at];
            fetch_row(view, tile, at, partials);
            float* out = partials.row(entry.emission);
            float* w = weights.w;
            weights.visited = sweep_entry(view, tile, entry, state, [&](int, Vec weight) {
                weight.store(w);
                w += lanes;
            });
            for_channel_groups(channels, [&](int c0, auto width) {
                project_weights<width.value>(weights.w, weights.visited, planes + c0 * tile_pixels,
                                             out + c0);
            });
        }
    });
    sum_partials(view, partials, values);
}

void normal(const View& view, const float* values, int channels, float* result) {
    Partials partials(view, channels);
    for_channel_groups(channels, [&](int first, auto width) {
        normal_tiles<width.value>(view, values + first, channels, partials, first);
    });
    sum_partials(view, partials, result);
}

void count(const View& view, const uint8_t* mask, float* counts) {
    Partials partials(view, 1);
    parallel_for(view.tiles_x * view.tiles_y, [&](int index, int) {
        const TileGeometry tile(view, index);
        uint32_t chosen[units] = {};  // one bit per pixel
        for (int row = 0; row < tile.rows; ++row)
            for (int column = 0; column < tile.columns; ++column)
                if (mask[std::size_t(tile.y + row) * view.camera.width + tile.x + column])
                    chosen[column / lanes * 16 + row] |= 1u << (column % lanes);
        TileState state;
        for (uint32_t at = tile.first; at < tile.last; ++at) {
            int found = 0;
            sweep_entry(view, tile, view.entries[at], state, [&](int unit, Vec weight) {
                found += __builtin_popcount(bits(weight > Vec::all(0.0f)) & chosen[unit]);
            });
            *partials.row(view.entries[at].emission) = static_cast<float>(found);
        }
    });
    sum_partials(view, partials, counts);
}

int64_t contributors(const View& view, int row, int column, uint32_t* gaussians, float* weights,
                     int64_t room) {
    const int index = row / tile_size * view.tiles_x + column / tile_size;
    const TileGeometry tile(view, index);
    const int wanted = row % tile_size * tile_size + column % tile_size;
    TileState state;
    int64_t found = 0;
    alignas(64) float w[lanes];
    for (uint32_t at = tile.first; at < tile.last; ++at) {
        const Entry& entry = view.entries[at];
        sweep_entry(view, tile, entry, state, [&](int unit, Vec weight) {
            const int lane = wanted - unit_pixel(unit);
            if (lane < 0 || lane >= lanes) return;
            weight.store(w);
            if (w[lane] <= 0) return;
            if (found < room) {
                gaussians[found] = view.footprints[entry.footprint].gaussian;
                weights[found] = w[lane];
            }
            ++found;
        });
    }
    return found;
}

}  // namespace SPLAT_ISA
}  // namespace splat
