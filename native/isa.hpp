// SPDX-License-Identifier: Apache-2.0
// What the kernel files of one instruction set share.
#pragma once

#include <algorithm>

#include "view.hpp"

namespace splat {
namespace SPLAT_ISA {

// Pixel centres of a tile relative to its middle.
alignas(64) constexpr float tile_axis[tile_size] = {-7.5f, -6.5f, -5.5f, -4.5f, -3.5f, -2.5f,
                                                    -1.5f, -0.5f, 0.5f,  1.5f,  2.5f,  3.5f,
                                                    4.5f,  5.5f,  6.5f,  7.5f};

// The exponent of a footprint about the point of a tile that is nearest to its mean:
//   u = u0 + gx lx + gy ly + a lx^2 + b lx ly + c ly^2,   l = pixel - origin.
// Expanded in double, it is then safe in float: about that point the terms fall together, for
// sharp Gaussians inside the tile as for long ones far off; only slanted needles of hundreds of
// pixels still cancel a little (3e-5 in alpha).
// The origin lies on a grid of 2^-10 pixels, which makes l exact.
struct TileExponent {
    float u0, gx, gy, a, b, c;
    float origin_x, origin_y;  // relative to the tile's middle
    double dx, dy;             // origin minus mean
    TileExponent(const Footprint& f, double centre_x, double centre_y) {
        const double ox = nearest(f.mean_x - centre_x), oy = nearest(f.mean_y - centre_y);
        dx = centre_x + ox - f.mean_x;
        dy = centre_y + oy - f.mean_y;
        u0 = static_cast<float>(f.log2_opacity + dx * (f.a * dx + f.b * dy) + f.c * dy * dy);
        gx = static_cast<float>(2 * f.a * dx + f.b * dy);
        gy = static_cast<float>(2 * f.c * dy + f.b * dx);
        a = static_cast<float>(f.a);
        b = static_cast<float>(f.b);
        c = static_cast<float>(f.c);
        origin_x = static_cast<float>(ox);
        origin_y = static_cast<float>(oy);
    }

private:
    static double nearest(double offset) {
        const double clamped = offset < -8.0 ? -8.0 : offset > 8.0 ? 8.0 : offset;
        constexpr double shifter = 6597069766656.0;  // 1.5 * 2^42: rounds to multiples of 2^-10
        return (clamped + shifter) - shifter;
    }
};

void prepare(View&, const RawSplats&);
void composite(const View&, const float* values, int channels, float* image);
void scatter(const View&, const float* image, int channels, float* values);
void normal(const View&, const float* values, int channels, float* result);
void count(const View&, const uint8_t* mask, float* counts);
void footprint(const View&, float* sums);
int64_t contributors(const View&, int row, int column, uint32_t* gaussians, float* weights,
                     int64_t room);
void backward(const View&, const RawSplats&, const ViewGradients&);
void shade(const View&, const float* means, const float* sh, int bases, int active, float* colours);
// Colours of the drawn Gaussians, one row each, `stride` floats apart, in ascending order.
void shade_rows(const View&, const float* means, const float* sh, int bases, int stride,
                float* rows);
void shade_backward(const View&, const float* means, const float* sh, int bases, int active,
                    const float* grad_colours, bool accumulate, float* grad_means, float* grad_sh);
void loss(LossRequest&);
void adam(const AdamRequest&);
extern const FieldKernels field_kernels;
// One row of `query_row` floats per drawn Gaussian, in ascending order of the Gaussians.
void pack_query_rows(const View&, const QueryGaussians&, float* rows);
void pack_query(const View&, const QueryGaussians&, float* values);
void summarise_maps(MapsRequest&);
float median(const float* values, std::size_t count);
extern const QueryKernels query_kernels;
void picture(const View&, const PictureRequest&);
void ask_witnesses(const WitnessRequest&);

}  // namespace SPLAT_ISA
}  // namespace splat
