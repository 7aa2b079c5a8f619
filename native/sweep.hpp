// SPDX-License-Identifier: Apache-2.0
// The weights w = alpha T of one tile, front to back: the one place where they are computed
// for compositing. Entries are taken in batches; within a batch each vector of pixels (a
// "unit": a row, or half a row) walks through the entries that can reach it, with its
// transmittance in a register.
#pragma once

#include "isa.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {

constexpr int lanes = Vec::width;
constexpr int parts = tile_size / lanes;  // units per row
constexpr int units = tile_size * parts;  // unit = part * 16 + row
constexpr int batch_size = 64;
constexpr int ahead = 12;  // entries fetched before they are needed

// The rows of an entry, as units of this vector width.
inline uint32_t unit_bits(uint32_t rows) {
    return parts == 2 ? rows : ((rows | rows >> 16) & 0xffffu);
}

// First pixel of a unit inside the tile's row-major 16 x 16 block.
inline int unit_pixel(int unit) { return (unit & 15) * tile_size + (unit >> 4) * lanes; }

struct Batch {
    alignas(64) float q0[batch_size][tile_size];  // u0 + gx lx + a lx^2
    alignas(64) float q1[batch_size][tile_size];  // gy + b lx
    float c[batch_size], origin_y[batch_size];
    uint32_t rows[batch_size];
    uint64_t entries_of_unit[32];
    const Entry* entries;
    int count;
};

inline void fetch(const View& view, const Entry& entry) {
    __builtin_prefetch(view.footprints.data + entry.footprint);
}

// 32 x 32 bit transpose by swapping ever smaller blocks.
inline void transpose_bits(uint32_t m[32]) {
    uint32_t mask = 0x0000ffffu;
    for (int j = 16; j != 0; j >>= 1, mask ^= mask << j)
        for (int k = 0; k < 32; k = (k + j + 1) & ~j) {
            const uint32_t t = ((m[k] >> j) ^ m[k + j]) & mask;
            m[k] ^= t << j;
            m[k + j] ^= t;
        }
}

inline void load_batch(const View& view, const Entry* entries, int count, double centre_x,
                       double centre_y, Batch& batch) {
    batch.entries = entries;
    batch.count = count;
    for (int e = 0; e < std::min(ahead, count); ++e) fetch(view, entries[e]);
    for (int e = 0; e < count; ++e) {
        if (e + ahead < count) fetch(view, entries[e + ahead]);
        const TileExponent t(view.footprints[entries[e].footprint], centre_x, centre_y);
        for (int i = 0; i < tile_size; i += lanes) {
            const Vec lx = Vec::load(tile_axis + i) - Vec::all(t.origin_x);
            fma(lx, fma(Vec::all(t.a), lx, Vec::all(t.gx)), Vec::all(t.u0)).store(batch.q0[e] + i);
            fma(Vec::all(t.b), lx, Vec::all(t.gy)).store(batch.q1[e] + i);
        }
        batch.c[e] = t.c;
        batch.origin_y[e] = t.origin_y;
        batch.rows[e] = unit_bits(entries[e].rows);
    }
    for (int e = count; e < batch_size; ++e) batch.rows[e] = 0;
    uint32_t low[32], high[32];
    std::memcpy(low, batch.rows, sizeof(low));
    std::memcpy(high, batch.rows + 32, sizeof(high));
    transpose_bits(low);
    transpose_bits(high);
    for (int unit = 0; unit < units; ++unit)
        batch.entries_of_unit[unit] = uint64_t(high[unit]) << 32 | low[unit];
}

// alpha of one unit; zero where it is below 1/255.
inline Vec unit_alpha(Vec q0, Vec q1, Vec c, Vec ly) {
    const Vec u = fma(ly, fma(c, ly, q1), q0);
    // Far out, 2^u is garbage; it is masked away before it meets arithmetic.
    return keep(min(exp2(u), Vec::all(float(alpha_cap))), u >= Vec::all(log2_alpha_floor));
}

// Applies one alpha: returns the weight and moves T on. A pixel that would fall to 1e-4 or
// below has T set to zero instead, which makes all its later weights zero. `open` tells
// whether any pixel is left.
inline Vec blend(Vec alpha, Vec& T, bool& open) {
    const Vec weight = T * alpha;
    const Vec next = attenuate(T, alpha);
    const Mask go = next > Vec::all(float(stop_transmittance));
    T = keep(next, go);
    open = any(go);
    return keep(weight, go);
}

// Weights of one unit for a batch; returns how many entries were met, their vectors in
// `weights` and their numbers within the batch in `met`.
inline int sweep_unit(const Batch& batch, int unit, float* T_store, float* weights, uint8_t* met) {
    uint64_t todo = batch.entries_of_unit[unit];
    const int part = (unit >> 4) * lanes;
    const Vec y = Vec::all(tile_axis[unit & 15]);
    Vec T = Vec::load(T_store);
    int n = 0;
    bool open = true;
    while (todo && open) {
        const int e = __builtin_ctzll(todo);
        todo &= todo - 1;
        const Vec alpha = unit_alpha(Vec::load(batch.q0[e] + part), Vec::load(batch.q1[e] + part),
                                     Vec::all(batch.c[e]), y - Vec::all(batch.origin_y[e]));
        blend(alpha, T, open).store(weights + n * lanes);
        met[n++] = static_cast<uint8_t>(e);
    }
    T.store(T_store);
    return n;
}

// Transmittance of a tile's pixels, and which units still let light through.
struct TileState {
    alignas(64) float T[units][lanes];
    uint32_t open = units == 32 ? 0xffffffffu : 0xffffu;
    TileState() {
        for (int unit = 0; unit < units; ++unit) Vec::all(1.0f).store(T[unit]);
    }
    bool exhausted(int unit) const { return !any(Vec::load(T[unit]) > Vec::all(0.0f)); }
};

struct TileGeometry {
    int x, y, columns, rows;
    uint32_t first, last;
    TileGeometry(const View& view, int tile) {
        x = tile % view.tiles_x * tile_size;
        y = tile / view.tiles_x * tile_size;
        columns = std::min(tile_size, view.camera.width - x);
        rows = std::min(tile_size, view.camera.height - y);
        first = view.tile_start[tile];
        last = view.tile_start[tile + 1];
    }
    double centre_x() const { return x + 8.0; }
    double centre_y() const { return y + 8.0; }
};

// body(tile, scratch) for every tile of a view, each thread with `floats` of memory of its own.
template <class Body>
inline void for_tiles(const View& view, std::size_t floats, Body&& body) {
    const int threads = thread_count();
    Array<float> scratch;
    scratch.resize(floats * threads);
    parallel_for(
        view.tiles_x * view.tiles_y,
        [&](int index, int worker) {
            body(TileGeometry(view, index), scratch.data + floats * worker);
        },
        threads);
}

// Walks a tile batch by batch: begin(batch) once per batch, then
// consume(unit, count, weights, met) for every unit that is still transparent.
template <class Begin, class Consume>
inline void sweep_tile(const View& view, const TileGeometry& tile, Batch& batch, Begin&& begin,
                       Consume&& consume) {
    TileState state;
    alignas(64) float weights[batch_size * lanes];
    uint8_t met[batch_size];
    for (uint32_t at = tile.first; at < tile.last && state.open; at += batch_size) {
        const int count = static_cast<int>(std::min<uint32_t>(batch_size, tile.last - at));
        load_batch(view, view.entries.data + at, count, tile.centre_x(), tile.centre_y(), batch);
        begin(batch);
        for (uint32_t rest = state.open; rest; rest &= rest - 1) {
            const int unit = __builtin_ctz(rest);
            if (!batch.entries_of_unit[unit]) continue;
            const int n = sweep_unit(batch, unit, state.T[unit], weights, met);
            consume(unit, n, weights, met);
            if (state.exhausted(unit)) state.open &= ~(1u << unit);
        }
    }
}

// Walks one entry over the units it can reach that are still transparent:
// consume(unit, weight), in ascending order of the unit. Returns the units visited.
template <class Consume>
inline uint32_t sweep_entry(const View& view, const TileGeometry& tile, const Entry& entry,
                            TileState& state, Consume&& consume) {
    const uint32_t visited = unit_bits(entry.rows) & state.open;
    if (!visited) return 0;
    if (&entry + ahead < view.entries.data + view.entries.size) fetch(view, (&entry)[ahead]);
    const TileExponent t(view.footprints[entry.footprint], tile.centre_x(), tile.centre_y());
    const Vec c = Vec::all(t.c);
    for (int part = 0; part < parts; ++part) {
        const Vec lx = Vec::load(tile_axis + part * lanes) - Vec::all(t.origin_x);
        const Vec q0 = fma(lx, fma(Vec::all(t.a), lx, Vec::all(t.gx)), Vec::all(t.u0));
        const Vec q1 = fma(Vec::all(t.b), lx, Vec::all(t.gy));
        for (uint32_t rows = visited >> (16 * part) & 0xffffu; rows; rows &= rows - 1) {
            const int row = __builtin_ctz(rows), unit = 16 * part + row;
            Vec T = Vec::load(state.T[unit]);
            bool open;
            const Vec weight =
                blend(unit_alpha(q0, q1, c, Vec::all(tile_axis[row] - t.origin_y)), T, open);
            T.store(state.T[unit]);
            if (!open) state.open &= ~(1u << unit);
            consume(unit, weight);
        }
    }
    return visited;
}

// A tile of an interleaved image as planes of 16 x 16; zero outside the image. C > 0: that
// many channels, known at compile time.
template <int C = 0>
inline void read_tile(const View& view, const TileGeometry& tile, const float* image, int channels,
                      float* planes) {
    if (C > 0) channels = C;
    if (tile.rows < tile_size || tile.columns < tile_size)
        std::memset(planes, 0, std::size_t(channels) * tile_pixels * sizeof(float));
    for (int row = 0; row < tile.rows; ++row) {
        const float* in =
            image + (std::size_t(tile.y + row) * view.camera.width + tile.x) * channels;
        float* out = planes + row * tile_size;
        for (int column = 0; column < tile.columns; ++column)
            for (int c = 0; c < channels; ++c) out[c * tile_pixels + column] = *in++;
    }
}

}  // namespace SPLAT_ISA
}  // namespace splat
