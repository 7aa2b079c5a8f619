// SPDX-License-Identifier: Apache-2.0
// EWA projection of a few Gaussians at once and its exact adjoint, in double precision.
#pragma once

#include <algorithm>

#include "lanes.hpp"
#include "view.hpp"

namespace splat {
namespace SPLAT_ISA {

struct Projection {
    Flag drawn;                   // in front, bright enough, finite
    Real x, y, z;                 // centre in the camera's frame
    Real mean_x, mean_y;          // pixels
    Real cov_xx, cov_xy, cov_yy;  // after the low-pass filter
    Real conic_xx, conic_xy, conic_yy;
    Real opacity;  // after compensation, if asked for
    // kept for the adjoint
    Real norm;                // of the raw quaternion
    Real q[4], s[3], rot[9];  // unit quaternion, scales, rotation
    Real slope_x, slope_y;    // x/z, y/z after the clamp
    Flag free_x, free_y;      // the clamp is inactive
    Real m[6], g[6];          // J W, and J W R S (2 x 3 each)
    Real raw_opacity, det_plain, det;
};

// The camera's slopes that the Jacobian may take, and what follows for cheap culling.
struct FieldOfView {
    double x0, x1, y0, y1, steep;
    explicit FieldOfView(const CameraModel& c) {
        const double tx = fov_margin * 0.5 * c.width / c.fx,
                     ty = fov_margin * 0.5 * c.height / c.fy;
        x0 = -(c.cx / c.fx + tx);
        x1 = (c.width - c.cx) / c.fx + tx;
        y0 = -(c.cy / c.fy + ty);
        y1 = (c.height - c.cy) / c.fy + ty;
        steep = 1 + std::max(x0 * x0, x1 * x1) + std::max(y0 * y0, y1 * y1);
    }
};

inline Real camera_axis(const CameraModel& camera, int axis, Real x, Real y, Real z) {
    const double* R = camera.rotation + 3 * axis;
    return R[0] * x + R[1] * y + R[2] * z + camera.shift[axis];
}

// False only for Gaussians that are certainly not drawn: behind the near plane, fainter than
// 1/255, or out of the image even with their largest axis at the steepest slope.
inline Flag may_be_drawn(const CameraModel& camera, const FieldOfView& fov, const RawSplats& splats,
                         const int64_t* index) {
    const Real wx = gather(splats.means, 3, 0, index), wy = gather(splats.means, 3, 1, index),
               wz = gather(splats.means, 3, 2, index);
    const Real z = camera_axis(camera, 2, wx, wy, wz);
    const Real rz = 1.0 / z;
    const Real mean_x = camera.fx * camera_axis(camera, 0, wx, wy, wz) * rz + camera.cx;
    const Real mean_y = camera.fy * camera_axis(camera, 1, wx, wy, wz) * rz + camera.cy;
    const Real widest = larger(
        gather(splats.log_scales, 3, 0, index),
        larger(gather(splats.log_scales, 3, 1, index), gather(splats.log_scales, 3, 2, index)));
    const Real focal = std::max(camera.fx, camera.fy) * rz;
    // 2 ln 255 = 11.08...: no opacity reaches further.
    const Real reach2 = 11.09 * (focal * focal * fov.steep * exponential(2.0 * widest) + low_pass);
    const Real none = all(0.0);
    const Real out_x = larger(larger(-mean_x, mean_x - camera.width), none);
    const Real out_y = larger(larger(-mean_y, mean_y - camera.height), none);
    // sigmoid(logit) >= 1/255 is logit >= -ln 254.
    const Real logit = gather(splats.logit_opacities, 1, 0, index);
    return (z > near_plane) & (out_x * out_x <= reach2) & (out_y * out_y <= reach2) &
           (logit >= -5.5373342671);
}

inline void rotation_of(const Real q[4], Real r[9]) {
    const Real w = q[0], x = q[1], y = q[2], z = q[3];
    r[0] = 1 - 2 * (y * y + z * z), r[1] = 2 * (x * y - w * z), r[2] = 2 * (x * z + w * y);
    r[3] = 2 * (x * y + w * z), r[4] = 1 - 2 * (x * x + z * z), r[5] = 2 * (y * z - w * x);
    r[6] = 2 * (x * z - w * y), r[7] = 2 * (y * z + w * x), r[8] = 1 - 2 * (x * x + y * y);
}

inline void project(const CameraModel& camera, const FieldOfView& fov, const RawSplats& splats,
                    const int64_t* index, Projection& p) {
    const double* R = camera.rotation;
    const Real wx = gather(splats.means, 3, 0, index), wy = gather(splats.means, 3, 1, index),
               wz = gather(splats.means, 3, 2, index);
    p.x = camera_axis(camera, 0, wx, wy, wz);
    p.y = camera_axis(camera, 1, wx, wy, wz);
    p.z = camera_axis(camera, 2, wx, wy, wz);
    const Real rz = 1.0 / p.z;
    const Real slope_x = p.x * rz, slope_y = p.y * rz;
    p.mean_x = camera.fx * slope_x + camera.cx;
    p.mean_y = camera.fy * slope_y + camera.cy;

    p.slope_x = smaller(larger(slope_x, all(fov.x0)), all(fov.x1));
    p.slope_y = smaller(larger(slope_y, all(fov.y0)), all(fov.y1));
    p.free_x = p.slope_x == slope_x;
    p.free_y = p.slope_y == slope_y;
    const Real jx = camera.fx * rz, jy = camera.fy * rz;
    for (int k = 0; k < 3; ++k) {
        p.m[k] = jx * (R[k] - p.slope_x * R[6 + k]);
        p.m[3 + k] = jy * (R[3 + k] - p.slope_y * R[6 + k]);
    }
    for (int k = 0; k < 4; ++k) p.q[k] = gather(splats.quats, 4, k, index);
    p.norm = square_root(p.q[0] * p.q[0] + p.q[1] * p.q[1] + p.q[2] * p.q[2] + p.q[3] * p.q[3]);
    for (int k = 0; k < 4; ++k) p.q[k] /= p.norm;
    rotation_of(p.q, p.rot);
    for (int k = 0; k < 3; ++k) {
        p.s[k] = exponential(gather(splats.log_scales, 3, k, index));
        p.g[k] = p.s[k] * (p.m[0] * p.rot[k] + p.m[1] * p.rot[3 + k] + p.m[2] * p.rot[6 + k]);
        p.g[3 + k] = p.s[k] * (p.m[3] * p.rot[k] + p.m[4] * p.rot[3 + k] + p.m[5] * p.rot[6 + k]);
    }
    const Real* g = p.g;
    const Real xx = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
    const Real xy = g[0] * g[3] + g[1] * g[4] + g[2] * g[5];
    const Real yy = g[3] * g[3] + g[4] * g[4] + g[5] * g[5];
    p.cov_xx = xx + low_pass;
    p.cov_xy = xy;
    p.cov_yy = yy + low_pass;
    p.det_plain = xx * yy - xy * xy;
    p.det = p.cov_xx * p.cov_yy - xy * xy;
    p.conic_xx = p.cov_yy / p.det;
    p.conic_xy = -xy / p.det;
    p.conic_yy = p.cov_xx / p.det;
    p.raw_opacity = 1.0 / (1.0 + exponential(-gather(splats.logit_opacities, 1, 0, index)));
    p.opacity = p.raw_opacity;
    if (camera.antialiased)
        p.opacity *= square_root(larger(all(compensation_floor), p.det_plain / p.det));
    p.drawn = (p.z > near_plane) & (p.opacity >= alpha_floor) & (p.det > 0.0) &
              finite(p.mean_x + p.mean_y + p.conic_xx + p.conic_xy + p.conic_yy);
}

struct ProjectionGradient {
    Real mean_x, mean_y, conic_xx, conic_xy, conic_yy, log_opacity;
};

struct RawGradient {
    Real means[3], quats[4], log_scales[3], logit;
};

inline void project_backward(const CameraModel& camera, const Projection& p,
                             const ProjectionGradient& d, RawGradient& out) {
    // conic = inverse of cov: d cov = - conic (d conic) conic, off-diagonals counted once.
    const Real A = p.conic_xx, B = p.conic_xy, C = p.conic_yy, h = 0.5 * d.conic_xy;
    const Real t0 = d.conic_xx * A + h * B, t1 = d.conic_xx * B + h * C;
    const Real t2 = h * A + d.conic_yy * B, t3 = h * B + d.conic_yy * C;
    Real cov_xx = -(A * t0 + B * t2), cov_yy = -(B * t1 + C * t3);
    Real cov_xy = -(A * t1 + B * t3) - (B * t0 + C * t2);

    out.logit = d.log_opacity * (1.0 - p.raw_opacity);
    if (camera.antialiased) {
        // log compensation = (log det_plain - log det) / 2 above its floor.
        const Flag above = p.det_plain / p.det > compensation_floor;
        const Real half = above ? 0.5 * d.log_opacity : all(0.0);
        const Real plain = above ? p.det_plain : all(1.0);
        cov_xx += half * ((p.cov_yy - low_pass) / plain - p.cov_yy / p.det);
        cov_yy += half * ((p.cov_xx - low_pass) / plain - p.cov_xx / p.det);
        cov_xy += -2.0 * half * (p.cov_xy / plain - p.cov_xy / p.det);
    }
    // cov = G G^T with G = M R S.
    Real dg[6], dr[9], dm[6] = {};
    for (int k = 0; k < 3; ++k) {
        dg[k] = 2.0 * cov_xx * p.g[k] + cov_xy * p.g[3 + k];
        dg[3 + k] = 2.0 * cov_yy * p.g[3 + k] + cov_xy * p.g[k];
        out.log_scales[k] = dg[k] * p.g[k] + dg[3 + k] * p.g[3 + k];
        for (int j = 0; j < 3; ++j) {
            dr[3 * j + k] = p.s[k] * (p.m[j] * dg[k] + p.m[3 + j] * dg[3 + k]);
            dm[j] += dg[k] * p.s[k] * p.rot[3 * j + k];
            dm[3 + j] += dg[3 + k] * p.s[k] * p.rot[3 * j + k];
        }
    }
    const Real w = p.q[0], x = p.q[1], y = p.q[2], z = p.q[3];
    const Real yz = dr[7] - dr[5], zx = dr[2] - dr[6], xy = dr[3] - dr[1];
    Real dq[4];
    dq[0] = 2.0 * (x * yz + y * zx + z * xy);
    dq[1] = 2.0 * (w * yz + y * (dr[1] + dr[3]) + z * (dr[2] + dr[6])) - 4.0 * x * (dr[4] + dr[8]);
    dq[2] = 2.0 * (w * zx + x * (dr[1] + dr[3]) + z * (dr[5] + dr[7])) - 4.0 * y * (dr[0] + dr[8]);
    dq[3] = 2.0 * (w * xy + x * (dr[2] + dr[6]) + y * (dr[5] + dr[7])) - 4.0 * z * (dr[0] + dr[4]);
    const Real along = dq[0] * w + dq[1] * x + dq[2] * y + dq[3] * z;
    for (int k = 0; k < 4; ++k) out.quats[k] = (dq[k] - along * p.q[k]) / p.norm;

    // Rows of M are f/z (R_row - slope R_2); slopes are x/z and y/z where the clamp is inactive.
    const double* R = camera.rotation;
    const Real rz = 1.0 / p.z, jx = camera.fx * rz, jy = camera.fy * rz;
    Real through_x = all(0.0), through_y = all(0.0), dz = all(0.0);
    for (int k = 0; k < 3; ++k) {
        through_x -= jx * dm[k] * R[6 + k];
        through_y -= jy * dm[3 + k] * R[6 + k];
        dz -= (dm[k] * p.m[k] + dm[3 + k] * p.m[3 + k]) * rz;
    }
    const Real slope_x = camera.fx * d.mean_x + (p.free_x ? through_x : all(0.0));
    const Real slope_y = camera.fy * d.mean_y + (p.free_y ? through_y : all(0.0));
    const Real dx = slope_x * rz, dy = slope_y * rz;
    dz -= (slope_x * p.x + slope_y * p.y) * rz * rz;
    for (int k = 0; k < 3; ++k) out.means[k] = R[k] * dx + R[3 + k] * dy + R[6 + k] * dz;
}

}  // namespace SPLAT_ISA
}  // namespace splat
