// SPDX-License-Identifier: Apache-2.0
// L1 and SSIM (11 x 11 Gaussian window, sigma 1.5) of two interleaved images, with the
// gradient to the first. Windows are separable; one output row at a time keeps every
// intermediate in cache. Channels never mix: horizontal taps are `channels` floats apart.
#include <cmath>
#include <cstring>

#include "isa.hpp"
#include "partials.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int radius = 5;
constexpr int taps = 2 * radius + 1;
constexpr float c1 = 0.01f * 0.01f, c2 = 0.03f * 0.03f;

struct Window {
    float w[taps];
    Window() {
        double sum = 0, raw[taps];
        for (int k = 0; k < taps; ++k) sum += raw[k] = std::exp(-(k - radius) * (k - radius) / 4.5);
        for (int k = 0; k < taps; ++k) w[k] = static_cast<float>(raw[k] / sum);
    }
};

// Rows padded with zeros on both sides, so that taps never leave them.
struct Layout {
    int width, height, channels, length, pad, stride;
    explicit Layout(const LossRequest& r)
        : width(r.width), height(r.height), channels(r.channels), length(r.width * r.channels),
          pad(radius * r.channels), stride((length + 2 * pad + Vec::width + 15) / 16 * 16) {}
};

// out[j] = sum over taps of w[k] row[j + (k - radius) channels], for all padded rows given.
template <int Maps>
inline void blur_across(const Window& window, const Layout& lay, const float* rows, int j,
                        Vec* out) {
    for (int m = 0; m < Maps; ++m) {
        const float* row = rows + std::size_t(m) * lay.stride + j;  // tap 0 of the padded row
        Vec acc = Vec::all(window.w[radius]) * Vec::load(row + lay.pad);
        for (int k = 0; k < radius; ++k)
            acc = fma(
                Vec::all(window.w[k]),
                Vec::load(row + k * lay.channels) + Vec::load(row + (taps - 1 - k) * lay.channels),
                acc);
        out[m] = acc;
    }
}

// A vector that may reach past the end of a row of exactly `length` floats.
inline Vec load_tail(const float* p, int left) {
    if (left >= Vec::width) return Vec::load(p);
    alignas(64) float buffer[Vec::width] = {};
    std::memcpy(buffer, p, left * sizeof(float));
    return Vec::load(buffer);
}
inline void store_tail(Vec v, float* p, int left) {
    if (left >= Vec::width) return v.store(p);
    alignas(64) float buffer[Vec::width];
    v.store(buffer);
    std::memcpy(p, buffer, left * sizeof(float));
}

// Means and second moments of a column of pixels around row y: x, y, xx, yy, xy. `Inside` says
// that no tap leaves the image, which lets the compiler unroll the window.
template <bool Inside>
void moments_down(const Window& window, const Layout& lay, const LossRequest& r, int y, int begin,
                  int end, float* rows) {
    const int k0 = Inside ? 0 : std::max(0, radius - y);
    const int k1 = Inside ? taps : std::min(taps, lay.height - y + radius);
    const std::size_t top = std::size_t(y + k0 - radius) * lay.length;
    for (int j = begin; j < end; j += Vec::width) {
        const int left = lay.length - j;
        const float *image = r.image + top + j, *target = r.target + top + j;
        Vec mx = Vec::all(0), my = mx, xx = mx, yy = mx, xy = mx;
        const auto tap = [&](int k, Vec x, Vec t) {
            const Vec w = Vec::all(window.w[k]), wx = w * x, wt = w * t;
            mx = mx + wx;
            my = my + wt;
            xx = fma(wx, x, xx);
            yy = fma(wt, t, yy);
            xy = fma(wx, t, xy);
        };
        if (left >= Vec::width)
            for (int k = k0; k < k1; ++k, image += lay.length, target += lay.length)
                tap(k, Vec::load(image), Vec::load(target));
        else
            for (int k = k0; k < k1; ++k, image += lay.length, target += lay.length)
                tap(k, load_tail(image, left), load_tail(target, left));
        float* out = rows + lay.pad + j;
        store_tail(mx, out, left);
        store_tail(my, out + lay.stride, left);
        store_tail(xx, out + 2 * std::size_t(lay.stride), left);
        store_tail(yy, out + 3 * std::size_t(lay.stride), left);
        store_tail(xy, out + 4 * std::size_t(lay.stride), left);
    }
}

// How much each pixel counts in the two means: rows of zeros and ones, one per float.
struct Weights {
    const LossRequest& r;
    double l1_total = 0, ssim_total = 0;
    explicit Weights(const LossRequest& request) : r(request) {
        if (!r.mask) {
            const double inner_y = std::max(0, r.height - 2 * radius);
            const double inner_x = std::max(0, r.width - 2 * radius);
            l1_total = double(r.height) * r.width;
            ssim_total = r.valid_only ? inner_y * inner_x : l1_total;
        }
        for (int y = 0; y < r.height && r.mask; ++y)
            for (int x = 0; x < r.width; ++x) {
                l1_total += counts(y, x);
                ssim_total += counts(y, x) && (!r.valid_only || inside(y, x));
            }
        l1_total *= r.channels;
        ssim_total *= r.channels;
    }
    bool counts(int y, int x) const { return !r.mask || r.mask[std::size_t(y) * r.width + x]; }
    bool inside(int y, int x) const {
        return y >= radius && x >= radius && y < r.height - radius && x < r.width - radius;
    }
    bool all_equal() const { return !r.mask && !r.valid_only; }
    void rows(int y, float* l1, float* ssim) const {
        for (int x = 0; x < r.width; ++x)
            for (int c = 0; c < r.channels; ++c) {
                *l1 = counts(y, x) ? 1.0f : 0.0f;
                *ssim++ = r.valid_only && !inside(y, x) ? 0.0f : *l1;
                ++l1;
            }
    }
};

double lane_sum(Vec v) {
    alignas(64) float lanes[Vec::width];
    v.store(lanes);
    double s = 0;
    for (int k = 0; k < Vec::width; ++k) s += lanes[k];
    return s;
}

// SSIM of row y, summed; its derivatives in the mean, the second moment and the mixed
// moment of the first image go to `slopes` (three images) if given.
double ssim_row(const Window& window, const Layout& lay, int y, const float* rows,
                const float* weight, float* slopes) {
    const std::size_t image = std::size_t(lay.height) * lay.length;
    Vec total = Vec::all(0.0f);
    for (int j = 0; j < lay.length; j += Vec::width) {
        const int left = lay.length - j;
        Vec b[5];
        blur_across<5>(window, lay, rows, j, b);
        const Vec w = load_tail(weight + j, left), two = Vec::all(2.0f);
        const Vec mx = b[0], my = b[1], mxmx = mx * mx, mymy = my * my, mxmy = mx * my;
        const Vec var_x = b[2] - mxmx, var_y = b[3] - mymy, cov = b[4] - mxmy;
        const Vec n1 = fma(two, mxmy, Vec::all(c1)), n2 = fma(two, cov, Vec::all(c2));
        const Vec d1 = mxmx + mymy + Vec::all(c1), d2 = var_x + var_y + Vec::all(c2);
        const Vec inverse = Vec::all(1.0f) / (d1 * d2);
        const Vec s = n1 * n2 * inverse;
        total = fma(s, w, total);
        if (!slopes) continue;
        const Vec d_var = Vec::all(0.0f) - s / d2;
        const Vec d_cov = two * n1 * inverse;
        // var and cov hold mx too: their share is subtracted here.
        Vec d_mean = two * my * n2 * inverse - two * mx * s / d1;
        d_mean = d_mean - two * mx * d_var - my * d_cov;
        const std::size_t at = std::size_t(y) * lay.length + j;
        store_tail(w * d_mean, slopes + at, left);
        store_tail(w * d_var, slopes + image + at, left);
        store_tail(w * d_cov, slopes + 2 * image + at, left);
    }
    return lane_sum(total);
}

template <bool Inside>
void slopes_down(const Window& window, const Layout& lay, const float* slopes, int y, int begin,
                 int end, float* rows) {
    const std::size_t image = std::size_t(lay.height) * lay.length;
    const int k0 = Inside ? 0 : std::max(0, radius - y);
    const int k1 = Inside ? taps : std::min(taps, lay.height - y + radius);
    const std::size_t top = std::size_t(y + k0 - radius) * lay.length;
    for (int m = 0; m < 3; ++m)
        for (int j = begin; j < end; j += Vec::width) {
            const int left = lay.length - j;
            const float* in = slopes + m * image + top + j;
            Vec acc = Vec::all(0);
            if (left >= Vec::width)
                for (int k = k0; k < k1; ++k, in += lay.length)
                    acc = fma(Vec::all(window.w[k]), Vec::load(in), acc);
            else
                for (int k = k0; k < k1; ++k, in += lay.length)
                    acc = fma(Vec::all(window.w[k]), load_tail(in, left), acc);
            store_tail(acc, rows + std::size_t(m) * lay.stride + lay.pad + j, left);
        }
}

void gradient_row(const Window& window, const Layout& lay, const LossRequest& r,
                  const Weights& weights, int y, const float* rows, const float* weight) {
    const Vec l1 = Vec::all(static_cast<float>(r.weight_l1 / weights.l1_total));
    const Vec ssim = Vec::all(static_cast<float>(-r.weight_ssim / weights.ssim_total));
    const std::size_t start = std::size_t(y) * lay.length;
    for (int j = 0; j < lay.length; j += Vec::width) {
        const int left = lay.length - j;
        Vec b[3];
        blur_across<3>(window, lay, rows, j, b);
        const Vec x = load_tail(r.image + start + j, left),
                  t = load_tail(r.target + start + j, left);
        const Vec w = load_tail(weight + j, left) * l1;
        const Vec sign = keep(w, x > t) - keep(w, x < t);
        const Vec g = b[0] + Vec::all(2.0f) * x * b[1] + t * b[2];
        store_tail(fma(ssim, g, sign), r.grad + start + j, left);
    }
}

double l1_row(const Layout& lay, const LossRequest& r, int y, const float* weight) {
    const std::size_t start = std::size_t(y) * lay.length;
    Vec total = Vec::all(0.0f);
    for (int j = 0; j < lay.length; j += Vec::width) {
        const int left = lay.length - j;
        const Vec x = load_tail(r.image + start + j, left),
                  t = load_tail(r.target + start + j, left);
        total = fma(load_tail(weight + j, left), abs(x - t), total);
    }
    return lane_sum(total);
}

constexpr int block_rows = 8;
constexpr int strip = 384;  // floats: eighteen rows of it stay in the first-level cache

// One block of rows: down(y, begin, end, rows of y) for each, strip by strip, so that the
// rows above and below are read from cache; then across(y, rows of y, weights).
template <class Down, class Across>
void blur_block(const Layout& lay, const Weights& weights, int block, int maps, float* scratch,
                Down&& down, Across&& across) {
    const int y0 = block * block_rows, y1 = std::min(lay.height, y0 + block_rows);
    float *l1_weight = scratch, *ssim_weight = scratch + lay.stride;
    float* rows = scratch + 2 * std::size_t(lay.stride);
    const std::size_t step = std::size_t(maps) * lay.stride;
    for (int j = 0; j < lay.length; j += strip)
        for (int y = y0; y < y1; ++y)
            down(y, j, std::min(lay.length, j + strip), rows + (y - y0) * step);
    for (int y = y0; y < y1; ++y) {
        if (!weights.all_equal()) weights.rows(y, l1_weight, ssim_weight);
        across(y, rows + (y - y0) * step, l1_weight, ssim_weight);
    }
}

}  // namespace

void loss(LossRequest& r) {
    const Layout lay(r);
    const Window window;
    const Weights weights(r);
    const auto inside = [&](int y) { return y >= radius && y < lay.height - radius; };
    Array<float> slopes, scratch;
    Array<double> sums;
    const std::size_t need = std::size_t(lay.stride) * (2 + 5 * block_rows);
    const int threads = thread_count(), blocks = (lay.height + block_rows - 1) / block_rows;
    if (r.grad) slopes.resize(3 * std::size_t(lay.height) * lay.length);
    sums.resize(2 * std::size_t(lay.height));
    scratch.resize(need * threads);
    std::memset(scratch.data, 0, scratch.size * sizeof(float));  // the padding stays zero
    for (int worker = 0; worker < threads; ++worker)
        for (int k = 0; k < 2 * lay.stride; ++k) scratch[need * worker + k] = 1.0f;
    parallel_for(
        blocks,
        [&](int block, int worker) {
            blur_block(
                lay, weights, block, 5, scratch.data + need * worker,
                [&](int y, int begin, int end, float* rows) {
                    inside(y) ? moments_down<true>(window, lay, r, y, begin, end, rows)
                              : moments_down<false>(window, lay, r, y, begin, end, rows);
                },
                [&](int y, const float* rows, const float* l1_weight, const float* ssim_weight) {
                    sums[2 * y] = l1_row(lay, r, y, l1_weight);
                    sums[2 * y + 1] =
                        ssim_row(window, lay, y, rows, ssim_weight, r.grad ? slopes.data : nullptr);
                });
        },
        threads);
    double l1 = 0, ssim = 0;
    for (int y = 0; y < lay.height; ++y) l1 += sums[2 * y], ssim += sums[2 * y + 1];
    r.l1 = weights.l1_total > 0 ? l1 / weights.l1_total : 0;
    r.ssim = weights.ssim_total > 0 ? ssim / weights.ssim_total : 1;
    if (!r.grad) return;
    if (weights.l1_total == 0 || weights.ssim_total == 0)
        return fill_zero(r.grad, std::size_t(lay.height) * lay.length);
    parallel_for(
        blocks,
        [&](int block, int worker) {
            blur_block(
                lay, weights, block, 3, scratch.data + need * worker,
                [&](int y, int begin, int end, float* rows) {
                    inside(y) ? slopes_down<true>(window, lay, slopes.data, y, begin, end, rows)
                              : slopes_down<false>(window, lay, slopes.data, y, begin, end, rows);
                },
                [&](int y, const float* rows, const float* l1_weight, const float*) {
                    gradient_row(window, lay, r, weights, y, rows, l1_weight);
                });
        },
        threads);
}

}  // namespace SPLAT_ISA
}  // namespace splat
