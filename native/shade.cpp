// SPDX-License-Identifier: Apache-2.0
// Colours of the drawn Gaussians towards the camera: max(0, SH(d) + 0.5), and the adjoint.
#include <cmath>

#include "harmonics.hpp"
#include "partials.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

struct Direction {
    float x, y, z, inverse_length;
};

Direction direction_to(const double centre[3], const float* mean) {
    const double dx = mean[0] - centre[0], dy = mean[1] - centre[1], dz = mean[2] - centre[2];
    const double r = 1.0 / std::sqrt(dx * dx + dy * dy + dz * dz);
    return {float(dx * r), float(dy * r), float(dz * r), float(r)};
}

void camera_centre(const CameraModel& camera, double centre[3]) {
    const double *R = camera.rotation, *t = camera.shift;
    for (int k = 0; k < 3; ++k) centre[k] = -(R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2]);
}

template <class F>
void for_drawn(const View& view, F&& body) {
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int k = begin; k < end; ++k) body(static_cast<int64_t>(view.drawn[k]));
    });
}

}  // namespace

void shade(const View& view, const float* means, const float* sh, int bases, int active,
           float* colours) {
    double centre[3];
    camera_centre(view.camera, centre);
    fill_zero(colours, std::size_t(view.count) * 3);
    for_drawn(view, [&](int64_t i) {
        const Direction d = direction_to(centre, means + 3 * i);
        float basis[max_bases];
        harmonics(d.x, d.y, d.z, active, basis);
        const float* coefficients = sh + i * bases * 3;
        float rgb[3] = {0.5f, 0.5f, 0.5f};
        for (int k = 0; k < active; ++k)
            for (int c = 0; c < 3; ++c) rgb[c] += basis[k] * coefficients[3 * k + c];
        for (int c = 0; c < 3; ++c) colours[3 * i + c] = rgb[c] > 0 ? rgb[c] : 0.0f;
    });
}

void shade_backward(const View& view, const float* means, const float* sh, int bases, int active,
                    const float* grad_colours, bool accumulate, float* grad_means, float* grad_sh) {
    double centre[3];
    camera_centre(view.camera, centre);
    if (!accumulate) {
        fill_zero(grad_means, std::size_t(view.count) * 3);
        fill_zero(grad_sh, std::size_t(view.count) * bases * 3);
    }
    for_drawn(view, [&](int64_t i) {
        const Direction d = direction_to(centre, means + 3 * i);
        float basis[max_bases], slope_x[max_bases], slope_y[max_bases], slope_z[max_bases];
        harmonics(d.x, d.y, d.z, active, basis);
        const float* coefficients = sh + i * bases * 3;
        float rgb[3] = {0.5f, 0.5f, 0.5f};
        for (int k = 0; k < active; ++k)
            for (int c = 0; c < 3; ++c) rgb[c] += basis[k] * coefficients[3 * k + c];
        float g[3];
        for (int c = 0; c < 3; ++c) g[c] = rgb[c] > 0 ? grad_colours[3 * i + c] : 0.0f;
        float* out = grad_sh + i * bases * 3;
        for (int k = 0; k < active; ++k)
            for (int c = 0; c < 3; ++c) out[3 * k + c] += basis[k] * g[c];
        if (active == 1) return;
        harmonics_slopes(d.x, d.y, d.z, active, slope_x, slope_y, slope_z);
        float gx = 0, gy = 0, gz = 0;
        for (int k = 1; k < active; ++k) {
            const float* s = coefficients + 3 * k;
            const float along = g[0] * s[0] + g[1] * s[1] + g[2] * s[2];
            gx += along * slope_x[k];
            gy += along * slope_y[k];
            gz += along * slope_z[k];
        }
        // Through the normalisation: remove the radial part, divide by the distance.
        const float radial = gx * d.x + gy * d.y + gz * d.z;
        grad_means[3 * i] += (gx - radial * d.x) * d.inverse_length;
        grad_means[3 * i + 1] += (gy - radial * d.y) * d.inverse_length;
        grad_means[3 * i + 2] += (gz - radial * d.z) * d.inverse_length;
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
