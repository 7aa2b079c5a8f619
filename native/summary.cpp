// SPDX-License-Identifier: Apache-2.0
// Mean, 10th and 50th percentile of each map of a query. Blocks of rows are swept by any
// thread and their findings added in order: the same bits for any number of threads.
#include <cmath>
#include <cstring>

#include "isa.hpp"
#include "percentile.hpp"
#include "sums.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int block_rows = 16;
constexpr int samples = 1024;
constexpr int levels = 2;
constexpr int lists = query_maps * levels;  // list = map * levels + level

constexpr double quantile(int list) { return list % levels == 0 ? 0.1 : 0.5; }

int64_t rank_of(int list, int64_t pixels) {  // ceil(n / 10), ceil(n / 2)
    return list % levels == 0 ? (pixels + 9) / 10 : (pixels + 1) / 2;
}

// Differences of neighbours over their distance: central ones inside, one-sided at the border.
struct Slope {
    int before, after;
    float scale;
    Slope(int at, int size) {
        before = at > 0 ? at - 1 : at;
        after = at + 1 < size ? at + 1 : at;
        scale = after > before ? 1.0f / static_cast<float>(after - before) : 0.0f;
    }
};

float slope_at(const MapsRequest& q, const float* light, int y, int x) {
    const Slope v(y, q.height), h(x, q.width);
    const auto at = [&](int row, int column) { return light[std::size_t(row) * q.width + column]; };
    const float dx = h.scale * (at(y, h.after) - at(y, h.before));
    const float dy = v.scale * (at(v.after, x) - at(v.before, x));
    return std::sqrt(dx * dx + dy * dy);
}

void slope_row(const MapsRequest& q, const float* light, int y, float* out) {
    const Slope v(y, q.height);
    const float* here = light + std::size_t(y) * q.width;
    const float* above = light + std::size_t(v.before) * q.width;
    const float* below = light + std::size_t(v.after) * q.width;
    const Vec half = Vec::all(0.5f), scale = Vec::all(v.scale);
    int x = 1;
    for (; x + Vec::width < q.width; x += Vec::width) {
        const Vec dx = half * (Vec::load(here + x + 1) - Vec::load(here + x - 1));
        const Vec dy = scale * (Vec::load(below + x) - Vec::load(above + x));
        sqrt(fma(dx, dx, dy * dy)).store(out + x);
    }
    for (; x < q.width; ++x) out[x] = slope_at(q, light, y, x);
    out[0] = slope_at(q, light, y, 0);
}

// What one block of rows found.
struct Found {
    double sum[query_maps];
    int64_t below[lists], inside[lists];
};

class Sweep {
public:
    explicit Sweep(const MapsRequest& q) : q_(q) {
        kept_.resize(lists * pixels());
        found_.resize((q.height + block_rows - 1) / block_rows);
    }

    void sample() {
        parallel_for(query_maps, [&](int map, int) {
            float values[samples];
            sample_sorted(pixels(), samples, values, [&](uint64_t p) {
                return map == map_light
                           ? slope_at(q_, plane(map), int(p / q_.width), int(p % q_.width))
                           : plane(map)[p];
            });
            for (int list = map * levels; list < (map + 1) * levels; ++list)
                brackets_[list] = bracket_of(values, samples, quantile(list));
        });
    }

    void run() {
        const int threads = thread_count();
        const std::size_t stride = (std::size_t(q_.width) + 15) / 16 * 16;
        Array<float> scratch;
        scratch.resize(stride * threads);
        parallel_for(
            static_cast<int>(found_.size),
            [&](int block, int worker) { sweep_block(block, scratch.data + stride * worker); },
            threads);
    }

    // Opens the brackets that missed their rank; false if there were none.
    bool open_missed() {
        bool missed = false;
        for (int list = 0; list < lists; ++list)
            if (!caught(list)) {
                brackets_[list] = Bracket();
                missed = true;
            }
        return missed;
    }

    void write(double* statistics) {
        float percentile[lists];
        parallel_for(lists, [&](int list, int) {
            percentile[list] =
                caught(list) ? select_from(list) : std::numeric_limits<float>::quiet_NaN();
        });
        for (int map = 0; map < query_maps; ++map) {
            double total = 0;
            for (std::size_t k = 0; k < found_.size; ++k) total += found_[k].sum[map];
            *statistics++ = total / static_cast<double>(pixels());
            for (int level = 0; level < levels; ++level)
                *statistics++ = percentile[map * levels + level];
        }
    }

private:
    void sweep_block(int block, float* slopes) {
        const int first = block * block_rows, last = std::min(q_.height, first + block_rows);
        Found& f = found_[block] = Found();
        for (int y = first; y < last; ++y) {
            slope_row(q_, plane(map_light), y, slopes);
            for (int map = 0; map < query_maps; ++map) {
                const float* row = map == map_light ? slopes : plane(map) + at(y);
                f.sum[map] += sum_of(row, q_.width);
                for (int list = map * levels; list < (map + 1) * levels; ++list)
                    divide_values(row, q_.width, brackets_[list], f.below[list], f.inside[list],
                                  kept(list) + at(first));
            }
        }
    }

    bool caught(int list) const {
        int64_t below = 0, inside = 0;
        for (std::size_t k = 0; k < found_.size; ++k) {
            below += found_[k].below[list];
            inside += found_[k].inside[list];
        }
        const int64_t rank = rank_of(list, static_cast<int64_t>(pixels()));
        return below < rank && rank <= below + inside;
    }

    // The blocks' values are brought together first.
    float select_from(int list) {
        int64_t rank = rank_of(list, static_cast<int64_t>(pixels())), count = 0;
        for (std::size_t k = 0; k < found_.size; ++k) {
            std::memmove(kept(list) + count, kept(list) + at(static_cast<int>(k) * block_rows),
                         found_[k].inside[list] * sizeof(float));
            count += found_[k].inside[list];
            rank -= found_[k].below[list];
        }
        return select(kept(list), count, rank, brackets_[list]);
    }

    std::size_t at(int y) const { return std::size_t(y) * q_.width; }
    std::size_t pixels() const { return at(q_.height); }
    const float* plane(int map) const { return q_.maps + pixels() * map; }
    float* kept(int list) { return kept_.data + pixels() * list; }

    const MapsRequest& q_;
    Bracket brackets_[lists];
    Array<float> kept_;   // [lists, pixels]: the values of a block from its first pixel on
    Array<Found> found_;  // by block
};

}  // namespace

void summarise_maps(MapsRequest& q) {
    Sweep sweep(q);
    sweep.sample();
    sweep.run();
    if (sweep.open_missed()) sweep.run();
    sweep.write(q.statistics);
}

}  // namespace SPLAT_ISA
}  // namespace splat
