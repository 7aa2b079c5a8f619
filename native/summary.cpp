// SPDX-License-Identifier: Apache-2.0
// One sweep over a packed query image: the picture, the field, and what a descriptor needs of
// the maps. Sums are kept per block of rows and added in order, so that any number of threads
// gives the same bits. Percentiles are exact order statistics: a sample brackets them, the
// sweep counts what lies below the bracket and keeps what lies inside.
#include <cmath>
#include <cstring>
#include <limits>

#include "isa.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int lanes = Vec::width;
constexpr int block_rows = 16;
constexpr float least_weight = 1e-6f;  // of a pixel whose maps are divided by alpha
constexpr float red = 0.299f, green = 0.587f, blue = 0.114f;  // luminance of encoded colours

enum Map { alpha, gradient, exposure, angle, spread, depth, depth_square, field, residual, maps };
constexpr int ranked = 5;  // maps with percentiles: alpha to spread
constexpr int levels = 2;  // the 10th and the 50th percentile
constexpr int lists = ranked * levels;

int64_t rank_of(int level, int64_t pixels) {  // ceil(n / 10), ceil(n / 2)
    return level == 0 ? (pixels + 9) / 10 : (pixels + 1) / 2;
}

typedef float Pixel __attribute__((vector_size(16)));
typedef int32_t PixelIndex __attribute__((vector_size(16)));
#if defined(__clang__)
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SPLAT_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, PixelIndex{i, j, k, l})
#endif

inline Pixel load_pixel(const float* p) {
    Pixel v;
    std::memcpy(&v, p, sizeof(v));
    return v;
}
inline void store_pixel(Pixel v, float* p) { std::memcpy(p, &v, sizeof(v)); }

inline void transpose(Pixel p[4]) {
    const Pixel a = SPLAT_PICK(p[0], p[1], 0, 4, 1, 5), b = SPLAT_PICK(p[2], p[3], 0, 4, 1, 5);
    const Pixel c = SPLAT_PICK(p[0], p[1], 2, 6, 3, 7), d = SPLAT_PICK(p[2], p[3], 2, 6, 3, 7);
    p[0] = SPLAT_PICK(a, b, 0, 1, 4, 5);
    p[1] = SPLAT_PICK(a, b, 2, 3, 6, 7);
    p[2] = SPLAT_PICK(c, d, 0, 1, 4, 5);
    p[3] = SPLAT_PICK(c, d, 2, 3, 6, 7);
}

// Not a number stays not a number.
inline Pixel clamp(Pixel v) {
    const Pixel zero = {}, one = zero + 1.0f;
    v = v < zero ? zero : v;
    return v > one ? one : v;
}

// Colour on the background, clamped, with alpha as the fourth entry.
inline Pixel shown(const QuerySummary& q, const float* in) {
    const Pixel v = load_pixel(in);
    const Pixel behind = {q.background[0], q.background[1], q.background[2], 0.0f};
    return clamp(v + (1.0f - v[channel_one]) * behind);
}

const float* pixel(const QuerySummary& q, int y, int x) {
    return q.image + (std::size_t(y) * q.width + x) * query_channels;
}

// Luminance of one row and, unless `center` is null, its picture.
void light_row(const QuerySummary& q, int y, float* light, float* center) {
    const float* in = pixel(q, y, 0);
    for (int x = 0; x < q.width; x += 4, in += 4 * query_channels) {
        const int count = std::min(4, q.width - x);
        Pixel p[4] = {};
        for (int k = 0; k < count; ++k) p[k] = shown(q, in + k * query_channels);
        if (center) {
            // A pixel is stored as four floats where the next one will overwrite the fourth.
            const int whole = x + 4 < q.width ? 4 : count - 1;
            for (int k = 0; k < whole; ++k) store_pixel(p[k], center + 3 * (x + k));
            if (whole < count) std::memcpy(center + 3 * (x + whole), &p[whole], 12);
        }
        transpose(p);
        store_pixel(red * p[0] + green * p[1] + blue * p[2], light + x);
    }
}

// The other channels of one row as planes: three to six, then six to nine.
void load_row(const QuerySummary& q, int y, float* const plane[maps]) {
    const float* in = pixel(q, y, 0);
    for (int x = 0; x < q.width; x += 4, in += 4 * query_channels) {
        const int count = std::min(4, q.width - x);
        Pixel p[4] = {}, r[4] = {};
        for (int k = 0; k < count; ++k) {
            p[k] = load_pixel(in + k * query_channels + channel_one);
            r[k] = load_pixel(in + k * query_channels + channel_angle);
        }
        transpose(p);
        transpose(r);
        store_pixel(p[0], plane[alpha] + x);
        store_pixel(p[1], plane[depth] + x);
        store_pixel(p[2], plane[exposure] + x);
        store_pixel(r[0], plane[angle] + x);
        store_pixel(r[1], plane[spread] + x);
        store_pixel(r[2], plane[field] + x);
        store_pixel(r[3], plane[residual] + x);
    }
}

// Maps are divided by alpha, the field is floored, depths are squared about a usual one. Rows
// are padded to whole vectors; what lies behind their end is never read again.
void divide_row(const QuerySummary& q, float usual_depth, float* const plane[maps]) {
    const Vec one = Vec::all(1.0f), least = Vec::all(least_weight);
    const Vec floor = Vec::all(q.field_floor), usual = Vec::all(usual_depth);
    for (int x = 0; x < q.width; x += lanes) {
        const Vec share = one / max(Vec::load(plane[alpha] + x), least);
        for (const int m : {exposure, angle, spread, residual})
            (share * Vec::load(plane[m] + x)).store(plane[m] + x);
        const Vec d = share * Vec::load(plane[depth] + x);
        d.store(plane[depth] + x);
        ((d - usual) * (d - usual)).store(plane[depth_square] + x);
        max(floor, Vec::load(plane[field] + x)).store(plane[field] + x);
    }
}

// Differences of neighbours over their distance: central ones inside, one-sided at the border.
struct Slope {
    int before, after;
    float scale;
    Slope(int at, int size) {
        before = at > 0 ? at - 1 : at;
        after = at + 1 < size ? at + 1 : at;
        scale = after > before ? 1.0f / (after - before) : 0.0f;
    }
};

void gradient_row(int width, const float* above, const float* here, const float* below, float scale,
                  float* out) {
    for (int x = 1; x < width - 1; ++x) {
        const float dx = 0.5f * (here[x + 1] - here[x - 1]), dy = scale * (below[x] - above[x]);
        out[x] = std::sqrt(dx * dx + dy * dy);
    }
    for (const int x : {0, width - 1}) {
        const Slope s(x, width);
        const float dx = s.scale * (here[s.after] - here[s.before]);
        const float dy = scale * (below[x] - above[x]);
        out[x] = std::sqrt(dx * dx + dy * dy);
    }
}

struct Bracket {
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
};

// What one block of rows found.
struct Found {
    double sum[maps] = {};
    int64_t below[lists] = {}, inside[lists] = {};
};

// Sums of a few vectors in float, of those in double.
double sum_row(const float* row, int width) {
    constexpr int stretch = 32 * lanes;
    double total = 0;
    int x = 0;
    while (x + lanes <= width) {
        Vec acc = Vec::all(0.0f);
        for (const int end = std::min(x + stretch, width - lanes + 1); x < end; x += lanes)
            acc = acc + Vec::load(row + x);
        total += sum(acc);
    }
    for (; x < width; ++x) total += row[x];
    return total;
}

// Counts values below a bracket, and appends those inside to `kept`.
void rank_row(const float* row, int width, Bracket bracket, int64_t& below, int64_t& inside,
              float* kept) {
    const Vec low = Vec::all(bracket.low), high = Vec::all(bracket.high);
    float* out = kept + inside;
    int64_t less = 0;
    int x = 0;
    for (; x + lanes <= width; x += lanes) {
        const Vec v = Vec::load(row + x);
        less += __builtin_popcount(bits(v < low));
        out += compress(v, bits(v >= low) & bits(high >= v), out);
    }
    for (; x < width; ++x) {
        less += row[x] < bracket.low;
        if (row[x] >= bracket.low && row[x] <= bracket.high) *out++ = row[x];
    }
    below += less;
    inside = out - kept;
}

// The rank-th smallest of values that lie in a bracket, counted from 1. Buckets of equal width
// leave few candidates; the values are overwritten.
float select(float* values, int64_t size, int64_t rank, Bracket bracket) {
    constexpr int buckets = 1024;
    const float scale = buckets / (bracket.high - bracket.low);
    if (std::isfinite(scale) && scale > 0) {
        const auto bucket = [&](float v) {
            return std::min(static_cast<int>((v - bracket.low) * scale), buckets - 1);
        };
        uint32_t count[buckets] = {};
        for (int64_t k = 0; k < size; ++k) ++count[bucket(values[k])];
        int wanted = 0;
        for (; rank > count[wanted]; ++wanted) rank -= count[wanted];
        int64_t left = 0;
        for (int64_t k = 0; k < size; ++k) {
            const float v = values[k];
            values[left] = v;
            left += bucket(v) == wanted;
        }
        size = left;
    }
    std::nth_element(values, values + rank - 1, values + size);
    return values[rank - 1];
}

struct Sweep {
    const QuerySummary& q;
    float usual_depth;  // squares are taken about it, so that their sum does not cancel
    Bracket brackets[lists];
    Array<float> kept;   // [lists, pixels]: a block's values from its first pixel on
    Array<Found> found;  // [blocks]

    void run() {
        constexpr int rows = maps + 3;
        const int blocks = (q.height + block_rows - 1) / block_rows, threads = thread_count();
        const std::size_t stride = (std::size_t(q.width) + 19) / 16 * 16;
        Array<float> scratch;
        scratch.resize(stride * rows * threads);
        kept.resize(lists * pixels());
        found.resize(blocks);
        parallel_for(
            blocks,
            [&](int block, int worker) {
                float* row[rows];
                for (int k = 0; k < rows; ++k) row[k] = scratch.data + stride * (rows * worker + k);
                sweep_block(block, row, row + maps);
            },
            threads);
    }

    // Rows of luminance rotate: the one above, this one, the one below.
    void sweep_block(int block, float* const* plane, float* const* light) {
        const int first = block * block_rows, last = std::min(q.height, first + block_rows);
        Found& f = found[block] = Found();
        float* list[lists];
        for (int k = 0; k < lists; ++k) list[k] = kept.data + pixels() * k + at(first);
        const auto bring = [&](int y) {
            const bool ours = y >= first && y < last;
            if (y >= 0 && y < q.height)
                light_row(q, y, light[y % 3], ours ? q.center + 3 * at(y) : nullptr);
        };
        bring(first - 1);
        bring(first);
        for (int y = first; y < last; ++y) {
            bring(y + 1);
            const Slope s(y, q.height);
            gradient_row(q.width, light[s.before % 3], light[y % 3], light[s.after % 3], s.scale,
                         plane[gradient]);
            load_row(q, y, plane);
            divide_row(q, usual_depth, plane);
            std::memcpy(q.field + at(y), plane[field], q.width * sizeof(float));
            for (int m = 0; m < maps; ++m) f.sum[m] += sum_row(plane[m], q.width);
            for (int k = 0; k < lists; ++k)
                rank_row(plane[k / levels], q.width, brackets[k], f.below[k], f.inside[k], list[k]);
        }
    }

    std::size_t at(int y) const { return std::size_t(y) * q.width; }
    std::size_t pixels() const { return at(q.height); }

    double mean(int map) const {
        double total = 0;
        for (std::size_t k = 0; k < found.size; ++k) total += found[k].sum[map];
        return total / static_cast<double>(pixels());
    }

    // The wanted rank lies inside the list's bracket.
    bool caught(int list) const {
        int64_t below = 0, inside = 0;
        for (std::size_t k = 0; k < found.size; ++k) {
            below += found[k].below[list];
            inside += found[k].inside[list];
        }
        const int64_t rank = rank_of(list % levels, pixels());
        return below < rank && rank <= below + inside;
    }

    float percentile(int list) {
        if (!caught(list)) return std::numeric_limits<float>::quiet_NaN();
        float* const start = kept.data + pixels() * list;
        int64_t rank = rank_of(list % levels, pixels()), size = 0;
        for (std::size_t k = 0; k < found.size; ++k) {
            const int64_t inside = found[k].inside[list];
            std::memmove(start + size, start + at(static_cast<int>(k) * block_rows),
                         inside * sizeof(float));
            rank -= found[k].below[list];
            size += inside;
        }
        return select(start, size, rank, brackets[list]);
    }
};

// The maps of one pixel, as the sweep computes them up to rounding; only brackets depend on it.
void sample_pixel(const QuerySummary& q, int y, int x, float* const out[ranked + 1], int at) {
    const auto light = [&](int row, int column) {
        const Pixel v = shown(q, pixel(q, row, column));
        return red * v[0] + green * v[1] + blue * v[2];
    };
    const Slope v(y, q.height), h(x, q.width);
    const float* p = pixel(q, y, x);
    const float share = 1.0f / std::max(p[channel_one], least_weight);
    const float dx = h.scale * (light(y, h.after) - light(y, h.before));
    const float dy = v.scale * (light(v.after, x) - light(v.before, x));
    out[alpha][at] = p[channel_one];
    out[gradient][at] = std::sqrt(dx * dx + dy * dy);
    out[exposure][at] = share * p[channel_exposure];
    out[angle][at] = share * p[channel_angle];
    out[spread][at] = share * p[channel_spread];
    out[depth][at] = share * p[channel_depth];
}

// Entry `at` of a sample in ascending order. Callers go from high entries to low ones: what lies
// above the last one asked for is in place already.
float sample_entry(float* sample, int at, int& end) {
    std::nth_element(sample, sample + at, sample + end);
    end = at + 1;
    return sample[at];
}

// Brackets of a map's percentiles: some standard deviations of a sample's rank on each side.
void bracket_map(float* sample, int count, Bracket* brackets) {
    for (int k = 0; k < count; ++k)
        if (std::isnan(sample[k])) sample[k] = 0.0f;
    int end = count;
    for (int level = levels - 1; level >= 0; --level) {
        const double q = level == 0 ? 0.1 : 0.5, at = q * count;
        const double reach = 1 + 2.5 * std::sqrt(q * (1 - q) * count);
        const int low = static_cast<int>(std::floor(at - reach));
        const int high = static_cast<int>(std::ceil(at + reach));
        if (high < end) brackets[level].high = sample_entry(sample, high, end);
        if (low >= 0) brackets[level].low = sample_entry(sample, low, end);
    }
}

// Pixels spread evenly by the golden ratio: brackets, and the depth to square about.
void sample_image(const QuerySummary& q, Sweep& sweep) {
    constexpr int samples = 1024, chunk = 128;
    const uint64_t pixels = uint64_t(q.height) * q.width;
    Array<float> values;
    values.resize(std::size_t(samples) * (ranked + 1));
    float* map[ranked + 1];
    for (int m = 0; m <= ranked; ++m) map[m] = values.data + m * samples;
    parallel_for(samples / chunk, [&](int part, int) {
        for (int k = part * chunk; k < (part + 1) * chunk; ++k) {
            const uint64_t p = (uint64_t(k) * 2654435769u & 0xffffffffu) * pixels >> 32;
            sample_pixel(q, static_cast<int>(p / q.width), static_cast<int>(p % q.width), map, k);
        }
    });
    parallel_for(ranked + 1, [&](int m, int) {
        int end = samples;
        if (m < ranked)
            bracket_map(map[m], samples, sweep.brackets + m * levels);
        else
            sweep.usual_depth = sample_entry(map[m], samples / 2, end);
    });
}

}  // namespace

void summarise_query(QuerySummary& q) {
    Sweep sweep = {q, 0.0f, {}, {}, {}};
    sample_image(q, sweep);
    sweep.run();
    // A sample may mislead. Its bracket is opened, and the sweep done again.
    bool again = false;
    for (int k = 0; k < lists; ++k)
        if (!sweep.caught(k)) {
            sweep.brackets[k] = Bracket();
            again = true;
        }
    if (again) sweep.run();

    float percentile[lists];
    parallel_for(lists, [&](int k, int) { percentile[k] = sweep.percentile(k); });
    double* out = q.statistics;
    const auto with_percentiles = [&](int map) {
        *out++ = sweep.mean(map);
        for (int level = 0; level < levels; ++level) *out++ = percentile[map * levels + level];
    };
    with_percentiles(alpha);
    with_percentiles(gradient);
    const double mean_depth = sweep.mean(depth), shift = mean_depth - sweep.usual_depth;
    *out++ = mean_depth;
    *out++ = std::sqrt(std::max(0.0, sweep.mean(depth_square) - shift * shift));
    for (const int map : {exposure, angle, spread}) with_percentiles(map);
    *out++ = sweep.mean(field);
    *out++ = sweep.mean(residual);
}

}  // namespace SPLAT_ISA
}  // namespace splat
