// SPDX-License-Identifier: Apache-2.0
// Drawn Gaussians with their values in rows, composited together: every channel is summed as
// `composite` sums it, to the bit, and a tile's pixels end up as planes of 16 x 16.
#pragma once

#include <cstdint>
#include <cstring>

#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {

// Channels for which there are registers.
#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
constexpr int most_channels = 10;
#else
constexpr int most_channels = 5;
#endif

// plane[c] += sum over the met entries of weight * value[c], for C channels of one unit.
template <int C, int Row>
inline void accumulate_row(int n, const float* weights, const uint8_t* met, const float* values,
                           float* planes, int pixel) {
    Vec acc[C];
    for (int c = 0; c < C; ++c) acc[c] = Vec::load(planes + c * tile_pixels + pixel);
    for (int k = 0; k < n; ++k) {
        const Vec w = Vec::load(weights + k * lanes);
        const float* value = values + met[k] * Row;
        for (int c = 0; c < C; ++c) acc[c] = fma(w, Vec::all(value[c]), acc[c]);
    }
    for (int c = 0; c < C; ++c) acc[c].store(planes + c * tile_pixels + pixel);
}

// Planes of the first C values of each row, `Row` floats apart, by rank of the Gaussian.
template <int C, int Row>
void sweep_rows(const View& view, const TileGeometry& tile, const float* rows, float* planes) {
    alignas(64) float local[batch_size * Row];
    std::memset(planes, 0, C * tile_pixels * sizeof(float));
    Batch batch;
    sweep_tile(
        view, tile, batch,
        [&](const Batch& b) {
            const float* row[batch_size];
            for (int e = 0; e < b.count; ++e) {
                row[e] = rows + std::size_t(view.footprints[b.entries[e].footprint].rank) * Row;
                __builtin_prefetch(row[e]);
            }
            for (int e = 0; e < b.count; ++e)
                std::memcpy(local + e * Row, row[e], Row * sizeof(float));
        },
        [&](int unit, int n, const float* weights, const uint8_t* met) {
            const int pixel = unit_pixel(unit);
            constexpr int some = std::min(C, most_channels), rest = C - some;
            accumulate_row<some, Row>(n, weights, met, local, planes, pixel);
            if constexpr (rest > 0)
                accumulate_row<rest, Row>(n, weights, met, local + some,
                                          planes + some * tile_pixels, pixel);
        });
}

typedef float Four __attribute__((vector_size(16)));
#if defined(__clang__)
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t FourPlaces __attribute__((vector_size(16)));
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, FourPlaces{i, j, k, l})
#endif

// A row of three planes as pixels, four at a time.
inline void interleave(const float* rgb, int columns, float* out) {
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

// Where the planes of a tile go. Images that no cache holds are written past the caches, which
// saves reading every line of them first.
class TileWriter {
public:
    // `floats` per pixel are written altogether.
    TileWriter(const View& view, const TileGeometry& tile, int floats)
        : tile_(tile), width_(view.camera.width) {
        const std::size_t bytes = width_ * view.camera.height * floats * sizeof(float);
        stream_ = bytes >= streamed_bytes && width_ % tile_size == 0;
    }
    ~TileWriter() {
        if (stream_) end_stream();
    }
    void plane(const float* in, float* image) const {
        for (int row = 0; row < tile_.rows; ++row, in += tile_size) write(in, 1, image + at(row));
    }
    void colours(const float* planes, float* image) const {
        alignas(64) float line[3 * tile_size];
        for (int row = 0; row < tile_.rows; ++row, planes += tile_size) {
            interleave(planes, tile_.columns, line);
            write(line, 3, image + 3 * at(row));
        }
    }

private:
    static constexpr std::size_t streamed_bytes = 16u << 20;
    std::size_t at(int row) const { return std::size_t(tile_.y + row) * width_ + tile_.x; }
    void write(const float* in, int floats, float* out) const {
        if (tile_.columns < tile_size) {
            std::memcpy(out, in, std::size_t(tile_.columns) * floats * sizeof(float));
        } else if (stream_ && reinterpret_cast<std::uintptr_t>(out) % 64 == 0) {
            for (int i = 0; i < tile_size * floats; i += lanes) Vec::load(in + i).stream(out + i);
        } else {
            for (int i = 0; i < tile_size * floats; i += lanes) Vec::load(in + i).store(out + i);
        }
    }
    const TileGeometry& tile_;
    std::size_t width_;
    bool stream_;
};

}  // namespace SPLAT_ISA
}  // namespace splat
