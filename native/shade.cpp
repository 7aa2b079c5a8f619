// SPDX-License-Identifier: Apache-2.0
// Colours of the drawn Gaussians towards the camera: max(0, SH(d) + 0.5), and the adjoint.
// One vector holds the same quantity of several Gaussians.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "harmonics.hpp"
#include "partials.hpp"
#include "transpose.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int group = Vec::width;  // Gaussians at a time
constexpr int ahead = 6;           // groups fetched before they are needed

// Some drawn Gaussians; lanes from `count` on repeat the last one and are never written.
struct Group {
    int64_t index[group];
    int first, count;  // ranks among the drawn ones
};

// Unit vectors from the camera; differences are taken in double, they may be small.
struct Directions {
    Vec x, y, z, inverse_length;
    Directions(const double centre[3], const float* means, const Group& g) {
        alignas(64) float offset[3][group];
        for (int k = 0; k < group; ++k)
            for (int c = 0; c < 3; ++c)
                offset[c][k] = static_cast<float>(means[3 * g.index[k] + c] - centre[c]);
        x = Vec::load(offset[0]), y = Vec::load(offset[1]), z = Vec::load(offset[2]);
        // Scaled by the largest part first, so that no square leaves the range of float.
        const Vec one = Vec::all(1.0f), largest = max(max(abs(x), abs(y)), abs(z));
        const Vec unit = one / max(largest, Vec::all(1e-37f));
        x = x * unit, y = y * unit, z = z * unit;
        const Vec r = one / sqrt(fma(x, x, fma(y, y, z * z)));
        x = x * r, y = y * r, z = z * r;
        inverse_length = r * unit;
    }
};

// What becomes of a float, or of a vector of them, that is written over another.
struct Set {
    static void put(float& out, float value) { out = value; }
    static void put(float* out, Vec value) { value.store(out); }
};
struct Add {
    static void put(float& out, float value) { out += value; }
    static void put(float* out, Vec value) { (Vec::load(out) + value).store(out); }
};

// Columns of a table's rows as vectors over the group, and back. As many columns as a vector has
// lanes are transposed together, where that is fast; the others are moved one by one.
inline void read_rows(const float* table, std::size_t stride, int columns, const Group& g,
                      Vec* out) {
    const int whole = transposes ? columns / group * group : 0;
    for (int c = 0; c < whole; c += group) {
        for (int k = 0; k < group; ++k) out[c + k] = Vec::load(table + g.index[k] * stride + c);
        transpose(out + c);
    }
    alignas(64) float block[3 * max_bases][group];
    for (int k = 0; k < group; ++k) {
        const float* row = table + g.index[k] * stride;
        for (int c = whole; c < columns; ++c) block[c - whole][k] = row[c];
    }
    for (int c = whole; c < columns; ++c) out[c] = Vec::load(block[c - whole]);
}

template <class How>
inline void write_rows(const Vec* in, std::size_t stride, int columns, const Group& g,
                       float* table) {
    const int whole = transposes ? columns / group * group : 0;
    for (int c = 0; c < whole; c += group) {
        Vec rows[group];
        std::copy_n(in + c, group, rows);
        transpose(rows);
        for (int k = 0; k < g.count; ++k) How::put(table + g.index[k] * stride + c, rows[k]);
    }
    alignas(64) float block[3 * max_bases][group];
    for (int c = whole; c < columns; ++c) in[c].store(block[c - whole]);
    for (int k = 0; k < g.count; ++k) {
        float* row = table + g.index[k] * stride;
        for (int c = whole; c < columns; ++c) How::put(row[c], block[c - whole][k]);
    }
}

// body(group) for all drawn Gaussians; their rows of `sh` are fetched ahead of use.
template <class F>
void for_groups(const View& view, const float* sh, int bases, F&& body) {
    constexpr std::size_t line = 16;  // floats
    const std::size_t width = std::size_t(bases) * 3;
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int at = begin; at < end; at += group) {
            Group g;
            g.first = at;
            g.count = std::min(group, end - at);
            for (int k = 0; k < group; ++k) {
                g.index[k] = view.drawn[at + std::min(k, g.count - 1)];
                const int later = at + k + ahead * group / 4;
                if (later < end)
                    for (std::size_t c = 0; c < width; c += line)
                        __builtin_prefetch(sh + view.drawn[later] * width + c);
            }
            body(g);
        }
    });
}

// Calls f with the number of harmonics as a compile-time constant.
template <class F>
void with_bases(int active, F&& f) {
    switch (active) {
        case 1: return f(std::integral_constant<int, 1>());
        case 4: return f(std::integral_constant<int, 4>());
        case 9: return f(std::integral_constant<int, 9>());
        case 16: return f(std::integral_constant<int, 16>());
        default: return f(std::integral_constant<int, 25>());
    }
}

template <int Active>
inline void raw_colours(const Vec* basis, const Vec* coefficients, Vec rgb[3]) {
    for (int c = 0; c < 3; ++c) rgb[c] = Vec::all(0.5f);
    for (int k = 0; k < Active; ++k)
        for (int c = 0; c < 3; ++c) rgb[c] = fma(basis[k], coefficients[3 * k + c], rgb[c]);
}

// put(group, rgb) for all drawn Gaussians.
template <int Active, class Put>
void for_colours(const View& view, const float* means, const float* sh, int bases, Put&& put) {
    double centre[3];
    camera_centre(view.camera, centre);
    for_groups(view, sh, bases, [&](const Group& g) {
        const Directions d(centre, means, g);
        Vec basis[Active], coefficients[3 * Active], rgb[3];
        harmonics(d.x, d.y, d.z, Active, basis);
        read_rows(sh, std::size_t(bases) * 3, 3 * Active, g, coefficients);
        raw_colours<Active>(basis, coefficients, rgb);
        for (int c = 0; c < 3; ++c) rgb[c] = max(rgb[c], Vec::all(0.0f));
        put(g, rgb);
    });
}

}  // namespace

void shade(const View& view, const float* means, const float* sh, int bases, int active,
           float* colours) {
    zero_undrawn(view, colours, 3);
    with_bases(active, [&](auto number) {
        for_colours<number>(view, means, sh, bases, [&](const Group& g, const Vec* rgb) {
            write_rows<Set>(rgb, 3, 3, g, colours);
        });
    });
}

void shade_rows(const View& view, const float* means, const float* sh, int bases, int stride,
                float* rows) {
    with_bases(bases, [&](auto number) {
        for_colours<number>(view, means, sh, bases, [&](const Group& g, const Vec* rgb) {
            alignas(64) float block[3][group];
            for (int c = 0; c < 3; ++c) rgb[c].store(block[c]);
            for (int k = 0; k < g.count; ++k)
                for (int c = 0; c < 3; ++c)
                    rows[std::size_t(g.first + k) * stride + c] = block[c][k];
        });
    });
}

void shade_backward(const View& view, const float* means, const float* sh, int bases, int active,
                    const float* grad_colours, bool accumulate, float* grad_means, float* grad_sh) {
    double centre[3];
    camera_centre(view.camera, centre);
    const std::size_t stride = std::size_t(bases) * 3;
    if (!accumulate) {
        zero_undrawn(view, grad_means, 3);
        zero_undrawn(view, grad_sh, stride);
    }
    with_bases(active, [&](auto number) {
        constexpr int Active = number;
        for_groups(view, sh, bases, [&](const Group& g) {
            const Directions d(centre, means, g);
            Vec basis[Active], coefficients[3 * Active], rgb[3], pull[3];
            harmonics(d.x, d.y, d.z, Active, basis);
            read_rows(sh, stride, 3 * Active, g, coefficients);
            raw_colours<Active>(basis, coefficients, rgb);
            read_rows(grad_colours, 3, 3, g, pull);
            for (int c = 0; c < 3; ++c) pull[c] = keep(pull[c], rgb[c] > Vec::all(0.0f));

            Vec slope_x[Active], slope_y[Active], slope_z[Active], mean[3];
            harmonics_slopes(d.x, d.y, d.z, Active, slope_x, slope_y, slope_z);
            Vec gx = Vec::all(0.0f), gy = gx, gz = gx;
            for (int k = 1; k < Active; ++k) {
                const Vec* s = coefficients + 3 * k;
                const Vec along = fma(pull[0], s[0], fma(pull[1], s[1], pull[2] * s[2]));
                gx = fma(along, slope_x[k], gx);
                gy = fma(along, slope_y[k], gy);
                gz = fma(along, slope_z[k], gz);
            }
            // Through the normalisation: remove the radial part, divide by the distance.
            const Vec radial = fma(gx, d.x, fma(gy, d.y, gz * d.z));
            mean[0] = fnma(radial, d.x, gx) * d.inverse_length;
            mean[1] = fnma(radial, d.y, gy) * d.inverse_length;
            mean[2] = fnma(radial, d.z, gz) * d.inverse_length;

            Vec* grads = coefficients;  // no longer needed
            for (int k = 0; k < Active; ++k)
                for (int c = 0; c < 3; ++c) grads[3 * k + c] = basis[k] * pull[c];
            if (accumulate) {
                write_rows<Add>(mean, 3, 3, g, grad_means);
                write_rows<Add>(grads, stride, 3 * Active, g, grad_sh);
            } else {
                write_rows<Set>(mean, 3, 3, g, grad_means);
                write_rows<Set>(grads, stride, 3 * Active, g, grad_sh);
                for (int k = 0; k < g.count; ++k)
                    std::memset(grad_sh + g.index[k] * stride + 3 * Active, 0,
                                (stride - 3 * Active) * sizeof(float));
            }
        });
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
