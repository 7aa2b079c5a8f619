// SPDX-License-Identifier: Apache-2.0
// Preparing a view: project, sort by depth, and list for every tile what it may show.
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "depth_sort.hpp"
#include "isa.hpp"
#include "projection.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int project_chunk = 2048, count_chunk = 64;

// Image-plane box of alpha >= 1/255, as tiles; false when it holds no pixel centre. Slightly
// too large a box is harmless: `reachable_rows` decides exactly.
bool tile_box(const CameraModel& camera, double x, double y, double cov_xx, double cov_yy,
              Footprint& out) {
    constexpr double margin = 1e-3;
    const double level = 2 * ln_2 * (double(out.log2_opacity) - log2_alpha_floor) + 1e-4;
    const double reach_x = std::sqrt(level * cov_xx) + margin,
                 reach_y = std::sqrt(level * cov_yy) + margin;
    const double x0 = std::max(0.0, std::ceil(x - reach_x - 0.5));
    const double x1 = std::min(camera.width - 1.0, std::floor(x + reach_x - 0.5));
    const double y0 = std::max(0.0, std::ceil(y - reach_y - 0.5));
    const double y1 = std::min(camera.height - 1.0, std::floor(y + reach_y - 0.5));
    if (!(x0 <= x1 && y0 <= y1)) return false;
    out.tile_x0 = static_cast<uint16_t>(static_cast<int>(x0) / tile_size);
    out.tile_y0 = static_cast<uint16_t>(static_cast<int>(y0) / tile_size);
    out.tile_x1 = static_cast<uint16_t>(static_cast<int>(x1) / tile_size);
    out.tile_y1 = static_cast<uint16_t>(static_cast<int>(y1) / tile_size);
    return true;
}

// Footprints of the drawn Gaussians among `index[0 .. real_lanes)`, appended in order.
// Lanes from `count` on repeat the last Gaussian and are ignored.
int64_t append_footprints(const CameraModel& camera, const FieldOfView& fov,
                          const RawSplats& splats, const int64_t* index, int count, Footprint* out,
                          Key* keys) {
    Projection p;
    project(camera, fov, splats, index, p);
    const Real a = -0.5 * log2_e * p.conic_xx, b = -log2_e * p.conic_xy,
               c = -0.5 * log2_e * p.conic_yy;
    int64_t appended = 0;
    for (int k = 0; k < count; ++k) {
        if (!p.drawn[k]) continue;
        Footprint& f = out[appended];
        f.log2_opacity = std::log2(static_cast<float>(p.opacity[k]));
        if (!tile_box(camera, p.mean_x[k], p.mean_y[k], p.cov_xx[k], p.cov_yy[k], f)) continue;
        f.mean_x = p.mean_x[k];
        f.mean_y = p.mean_y[k];
        f.a = a[k];
        f.b = b[k];
        f.c = c[k];
        f.depth = static_cast<float>(p.z[k]);
        f.gaussian = static_cast<uint32_t>(index[k]);
        keys[appended++].depth = depth_key(p.z[k]);
    }
    return appended;
}

// Those of Gaussians begin .. end - 1 that pass a cheap test, in order.
int find_candidates(const CameraModel& camera, const RawSplats& splats, int64_t begin, int64_t end,
                    uint32_t* out) {
    const FieldOfView fov(camera);
    int found = 0;
    for (int64_t i = begin; i < end; i += real_lanes) {
        int64_t index[real_lanes];
        for (int k = 0; k < real_lanes; ++k) index[k] = std::min(i + k, end - 1);
        const Flag keep = may_be_drawn(camera, fov, splats, index);
        for (int k = 0; k < real_lanes && i + k < end; ++k) {
            out[found] = static_cast<uint32_t>(i + k);
            found += keep[k] != 0;
        }
    }
    return found;
}

// Footprints of the drawn ones among `count` candidates.
int64_t project_candidates(const CameraModel& camera, const RawSplats& splats,
                           const uint32_t* candidates, int count, Footprint* out, Key* keys) {
    const FieldOfView fov(camera);
    int64_t drawn = 0;
    for (int i = 0; i < count; i += real_lanes) {
        int64_t index[real_lanes];
        for (int k = 0; k < real_lanes; ++k) index[k] = candidates[std::min(i + k, count - 1)];
        drawn += append_footprints(camera, fov, splats, index, std::min(real_lanes, count - i),
                                   out + drawn, keys + drawn);
    }
    return drawn;
}

// Sums of counts: start[k] becomes where chunk k begins, the last one the total.
std::size_t accumulate(Array<uint32_t>& start) {
    start[0] = 0;
    for (std::size_t k = 0; k + 1 < start.size; ++k) start[k + 1] += start[k];
    return start[start.size - 1];
}

// Memory is taken for what may be drawn, not for every Gaussian: with millions of them, fresh
// pages would cost more than the work.
void project_all(View& view, const RawSplats& splats) {
    const int chunks = static_cast<int>((splats.count + project_chunk - 1) / project_chunk);
    Array<uint32_t> candidates, first, start;
    candidates.resize(static_cast<std::size_t>(chunks) * project_chunk);
    first.resize(static_cast<std::size_t>(chunks) + 1);
    start.resize(first.size);
    const auto listed = [&](int chunk) {
        return candidates.data + std::size_t(chunk) * project_chunk;
    };
    parallel_for(chunks, [&](int chunk, int) {
        const int64_t begin = int64_t(chunk) * project_chunk;
        const int64_t end = std::min(splats.count, begin + project_chunk);
        first[chunk + 1] = find_candidates(view.camera, splats, begin, end, listed(chunk));
    });
    const std::size_t room = accumulate(first);

    Array<Footprint> loose;
    Array<Key> keys, spare;
    loose.resize(room);
    keys.resize(room);
    parallel_for(chunks, [&](int chunk, int) {
        start[chunk + 1] = static_cast<uint32_t>(project_candidates(
            view.camera, splats, listed(chunk), static_cast<int>(first[chunk + 1] - first[chunk]),
            loose.data + first[chunk], keys.data + first[chunk]));
    });
    const std::size_t drawn = accumulate(start);

    spare.resize(room);
    view.drawn.resize(drawn);
    parallel_for(chunks, [&](int chunk, int) {
        for (uint32_t k = start[chunk], at = first[chunk]; k < start[chunk + 1]; ++k, ++at) {
            spare[k] = {keys[at].depth, at};
            view.drawn[k] = loose[at].gaussian;
            loose[at].rank = k;
        }
    });
    keys.size = spare.size = drawn;
    std::swap(keys.data, spare.data);
    std::swap(keys.capacity, spare.capacity);
    sort_by_depth(keys, spare);

    view.footprints.resize(drawn);
    const int blocks = static_cast<int>((drawn + project_chunk - 1) / project_chunk);
    parallel_for(blocks, [&](int block, int) {
        constexpr std::size_t ahead = 16;
        const std::size_t end =
            std::min(drawn, static_cast<std::size_t>(block + 1) * project_chunk);
        for (std::size_t k = static_cast<std::size_t>(block) * project_chunk; k < end; ++k) {
            if (k + ahead < end) __builtin_prefetch(loose.data + keys[k + ahead].index);
            view.footprints[k] = loose[keys[k].index];
        }
    });
}

// Which half rows of a tile can reach alpha >= 1/255: the concave exponent's maximum over
// each half row's pixel centres. A margin of 0.01 in log2 covers the float rounding; the
// kernels still test every pixel, so a superset changes nothing.
uint32_t reachable_rows(const Footprint& f, double centre_x, double centre_y) {
    const TileExponent e(f, centre_x, centre_y);
    const float turn = -0.5f / e.a;
    uint32_t result = 0;
    for (int first = 0; first < tile_size; first += Vec::width) {
        const Vec ly = Vec::load(tile_axis + first) - Vec::all(e.origin_y);
        const Vec peak = fma(Vec::all(e.b * turn), ly, Vec::all(e.gx * turn));
        const Vec along_y = fma(ly, fma(Vec::all(e.c), ly, Vec::all(e.gy)), Vec::all(e.u0));
        const Vec slope = fma(Vec::all(e.b), ly, Vec::all(e.gx));
        for (int half = 0; half < 2; ++half) {
            const float left = (half ? 0.5f : -7.5f) - e.origin_x;
            const Vec lx = min(max(peak, Vec::all(left)), Vec::all(left + 7.0f));
            const Vec top = fma(lx, fma(Vec::all(e.a), lx, slope), along_y);
            result |= bits(top >= Vec::all(log2_alpha_floor - 0.01f)) << (16 * half + first);
        }
    }
    return result;
}

// Half rows of a tile that lie inside the image.
uint32_t image_rows(const CameraModel& camera, int tile_x, int tile_y) {
    const int rows = std::min(tile_size, camera.height - tile_y * tile_size);
    const uint32_t column = rows >= 16 ? 0xffffu : (1u << rows) - 1;
    const bool right = camera.width > tile_x * tile_size + half_width;
    return column | (right ? column << 16 : 0);
}

// Refuses a view with more entries than its limit before any is stored. The boxes of tiles give
// a bound; only where that is too large are entries counted, and no further than the limit.
void require_room(const View& view) {
    const std::size_t drawn = view.footprints.size;
    uint64_t bound = 0;
    for (std::size_t k = 0; k < drawn; ++k) {
        const Footprint& f = view.footprints[k];
        bound += uint64_t(f.tile_x1 - f.tile_x0 + 1) * uint64_t(f.tile_y1 - f.tile_y0 + 1);
    }
    if (bound <= view.entry_limit) return;
    std::atomic<uint64_t> total{0};
    const int blocks = static_cast<int>((drawn + count_chunk - 1) / count_chunk);
    parallel_for(blocks, [&](int block, int) {
        const std::size_t end = std::min(drawn, std::size_t(block + 1) * count_chunk);
        for (std::size_t k = std::size_t(block) * count_chunk; k < end; ++k) {
            const Footprint& f = view.footprints[k];
            for (int ty = f.tile_y0; ty <= f.tile_y1; ++ty) {
                if (total.load(std::memory_order_relaxed) > view.entry_limit) return;
                uint64_t found = 0;
                for (int tx = f.tile_x0; tx <= f.tile_x1; ++tx)
                    found += (reachable_rows(f, tx * 16 + 8.0, ty * 16 + 8.0) &
                              image_rows(view.camera, tx, ty)) != 0;
                total.fetch_add(found, std::memory_order_relaxed);
            }
        }
    });
    if (total > view.entry_limit) throw TooManyEntries(std::to_string(bound));
}

struct Emission {
    uint32_t tile, rows;
};

// Emissions of one chunk of footprints, in order; grows by doubling.
struct Emissions {
    Array<Emission> list;
    std::size_t count = 0;
    void push(Emission e) {
        if (count == list.size) {
            Array<Emission> larger;
            larger.resize(list.size ? 2 * list.size : 8192);
            if (count) std::memcpy(larger.data, list.data, count * sizeof(Emission));
            std::swap(list.data, larger.data);
            std::swap(list.capacity, larger.capacity);
            list.size = list.capacity;
        }
        list[count++] = e;
    }
};

void bin_tiles(View& view) {
    const std::size_t drawn = view.footprints.size;
    const std::size_t tiles = std::size_t(view.tiles_x) * view.tiles_y;
    const int chunks = static_cast<int>(std::min<std::size_t>(64, (drawn + 511) / 512));
    const auto begin_of = [&](int chunk) { return drawn * chunk / (chunks ? chunks : 1); };

    Emissions* emitted = new Emissions[chunks];
    struct Owner {
        Emissions* p;
        ~Owner() { delete[] p; }
    } owner{emitted};
    Array<uint32_t> counts;
    counts.resize(tiles * chunks);
    view.emission_start.resize(drawn + 1);

    parallel_for(chunks, [&](int chunk, int) {
        uint32_t* mine = counts.data + tiles * chunk;
        std::memset(mine, 0, tiles * sizeof(uint32_t));
        for (std::size_t k = begin_of(chunk); k < begin_of(chunk + 1); ++k) {
            const Footprint& f = view.footprints[k];
            const std::size_t before = emitted[chunk].count;
            for (int ty = f.tile_y0; ty <= f.tile_y1; ++ty)
                for (int tx = f.tile_x0; tx <= f.tile_x1; ++tx) {
                    const uint32_t rows = reachable_rows(f, tx * 16 + 8.0, ty * 16 + 8.0) &
                                          image_rows(view.camera, tx, ty);
                    if (!rows) continue;
                    const uint32_t tile = static_cast<uint32_t>(ty) * view.tiles_x + tx;
                    ++mine[tile];
                    emitted[chunk].push({tile, rows});
                }
            view.emission_start[f.rank + 1] = static_cast<uint32_t>(emitted[chunk].count - before);
        }
    });

    uint64_t total = 0;
    view.tile_start.resize(tiles + 1);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        view.tile_start[tile] = static_cast<uint32_t>(total);
        for (int chunk = 0; chunk < chunks; ++chunk) {
            uint32_t& slot = counts[tiles * chunk + tile];
            const uint32_t here = slot;
            slot = static_cast<uint32_t>(total);
            total += here;
        }
    }
    view.tile_start[tiles] = static_cast<uint32_t>(total);
    view.emission_start[0] = 0;
    for (std::size_t k = 0; k < drawn; ++k) view.emission_start[k + 1] += view.emission_start[k];

    view.entries.resize(total);
    parallel_for(chunks, [&](int chunk, int) {
        uint32_t* next = counts.data + tiles * chunk;
        std::size_t e = 0;
        for (std::size_t k = begin_of(chunk); k < begin_of(chunk + 1); ++k) {
            const uint32_t rank = view.footprints[k].rank;
            for (uint32_t n = view.emission_start[rank]; n < view.emission_start[rank + 1];
                 ++n, ++e) {
                const Emission& m = emitted[chunk].list[e];
                view.entries[next[m.tile]++] = {static_cast<uint32_t>(k), m.rows, n};
            }
        }
    });
}

}  // namespace

void prepare(View& view, const RawSplats& splats) {
    view.count = splats.count;
    view.tiles_x = (view.camera.width + tile_size - 1) / tile_size;
    view.tiles_y = (view.camera.height + tile_size - 1) / tile_size;
    project_all(view, splats);
    require_room(view);
    bin_tiles(view);
}

}  // namespace SPLAT_ISA
}  // namespace splat
