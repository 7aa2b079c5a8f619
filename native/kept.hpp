// SPDX-License-Identifier: Apache-2.0
// Two passes over the same weights of a tile: the first composites and keeps them, the second
// sums what the pixels then hold, entry by entry. This is A'A, and all that is like it.
#pragma once

#include <cstring>

#include "partials.hpp"
#include "sweep.hpp"

namespace splat {
namespace SPLAT_ISA {

// The weights of one tile as they were met, for a second pass over them.
struct Kept {
    struct Run {
        uint8_t unit, count;  // entries met by one unit of one batch
    };
    Array<float> weights;
    Array<uint8_t> met;
    Array<Run> runs;
    Array<uint8_t> runs_of_batch;

    void reserve(const View& view, const TileGeometry& tile) {
        std::size_t room = 0;
        for (uint32_t at = tile.first; at < tile.last; ++at)
            room += __builtin_popcount(unit_bits(view.entries[at].rows));
        const std::size_t batches = (tile.last - tile.first + batch_size - 1) / batch_size;
        weights.resize(room * lanes);
        met.resize(room);
        runs.resize(batches * units);
        runs_of_batch.resize(batches);
    }
};

// planes[c] += sum over entries of weight * value[c], keeping the weights. `gather(footprint, row)`
// fetches the C values of a drawn Gaussian.
template <int C, class Gather>
void composite_tile(const View& view, const TileGeometry& tile, Gather&& gather, Kept& kept,
                    float* planes) {
    TileState state;
    Batch batch;
    float values[batch_size][C];
    kept.reserve(view, tile);
    float* weights = kept.weights.data;
    uint8_t* met = kept.met.data;
    Kept::Run* run = kept.runs.data;
    uint8_t* runs = kept.runs_of_batch.data;
    for (uint32_t at = tile.first; at < tile.last; at += batch_size, ++runs) {
        const Kept::Run* first_run = run;
        if (state.open) {
            const int count = static_cast<int>(std::min<uint32_t>(batch_size, tile.last - at));
            load_batch(view, view.entries.data + at, count, tile.centre_x(), tile.centre_y(),
                       batch);
            for (int e = 0; e < count; ++e)
                gather(view.footprints[batch.entries[e].footprint], values[e]);
            for (uint32_t rest = state.open; rest; rest &= rest - 1) {
                const int unit = __builtin_ctz(rest);
                if (!batch.entries_of_unit[unit]) continue;
                const int n = sweep_unit(batch, unit, state.T[unit], weights, met);
                if (state.exhausted(unit)) state.open &= ~(1u << unit);
                float* pixels = planes + unit_pixel(unit);
                Vec sums[C];
                for (int c = 0; c < C; ++c) sums[c] = Vec::load(pixels + c * tile_pixels);
                for (int k = 0; k < n; ++k) {
                    const Vec w = Vec::load(weights + k * lanes);
                    for (int c = 0; c < C; ++c)
                        sums[c] = fma(w, Vec::all(values[met[k]][c]), sums[c]);
                }
                for (int c = 0; c < C; ++c) sums[c].store(pixels + c * tile_pixels);
                weights += n * lanes;
                met += n;
                *run++ = {static_cast<uint8_t>(unit), static_cast<uint8_t>(n)};
            }
        }
        *runs = static_cast<uint8_t>(run - first_run);
    }
}

// A second pass over the kept weights: C sums per entry, written to its partial row from
// `column` on.
// `begin(pixel)` fetches what a unit's pixels hold, `add(w, held, sums)` takes one weight.
template <int C, class Begin, class Add>
void scatter_tile(const View& view, const TileGeometry& tile, const Kept& kept, Begin&& begin,
                  Add&& add, const Partials& partials, int column = 0) {
    const float* weights = kept.weights.data;
    const uint8_t* met = kept.met.data;
    const Kept::Run* run = kept.runs.data;
    const uint8_t* runs = kept.runs_of_batch.data;
    for (uint32_t at = tile.first; at < tile.last; at += batch_size, ++runs) {
        const int count = static_cast<int>(std::min<uint32_t>(batch_size, tile.last - at));
        Vec sums[batch_size * C];
        for (int k = 0; k < batch_size * C; ++k) sums[k] = Vec::all(0.0f);
        for (int r = 0; r < *runs; ++r, ++run) {
            const auto held = begin(unit_pixel(run->unit));
            for (int k = 0; k < run->count; ++k, ++met, weights += lanes)
                add(Vec::load(weights), held, sums + *met * C);
        }
        alignas(64) float out[batch_size * C];
        for (int k = 0; k < count * C; k += 8) sum_eight(sums + k, out + k);
        for (int e = 0; e < count; ++e)
            std::memcpy(partials.row(view.entries[at + e].emission) + column, out + e * C,
                        C * sizeof(float));
    }
}

// One Kept per thread.
struct Workers {
    int threads = thread_count();
    Kept* kept = new Kept[threads];
    ~Workers() { delete[] kept; }
};

// pass(tile, kept) for every tile of a view.
template <class Pass>
void for_kept_tiles(const View& view, Pass&& pass) {
    Workers workers;
    parallel_for(
        view.tiles_x * view.tiles_y,
        [&](int index, int worker) { pass(TileGeometry(view, index), workers.kept[worker]); },
        workers.threads);
}

}  // namespace SPLAT_ISA
}  // namespace splat
