// SPDX-License-Identifier: Apache-2.0
// Real spherical harmonics of degree 0 to 4 in the order and signs of 3DGS files:
// harmonic (l, +-m) = N_lm * d^m P_l / dz^m * (Re or Im)(x + iy)^m.
// `T` is a float, or a vector of them for several directions at once.
#pragma once

#include "simd.hpp"
#include "view.hpp"

namespace splat {
namespace SPLAT_ISA {

// Where directions towards Gaussians start, in world coordinates.
inline void camera_centre(const CameraModel& camera, double centre[3]) {
    const double *R = camera.rotation, *t = camera.shift;
    for (int k = 0; k < 3; ++k) centre[k] = -(R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2]);
}

constexpr int max_degree = 4;
constexpr int max_bases = (max_degree + 1) * (max_degree + 1);

// N_lm with the phase (-1)^m.
constexpr float harmonic_norm[5][5] = {
    {0.28209479177387814f, 0, 0, 0, 0},
    {0.48860251190291992f, -0.48860251190291992f, 0, 0, 0},
    {0.63078313050504009f, -0.36418281019735975f, 0.18209140509867987f, 0, 0},
    {0.74635266518023080f, -0.30469719964297720f, 0.09635371475468515f, -0.03933623932844291f, 0},
    {0.84628437532163447f, -0.26761861742291571f, 0.06307831305050401f, -0.01685838828361839f,
     0.00596034033761120f}};

template <class T>
struct Lift {
    static T of(float x) { return T::all(x); }
};
template <>
struct Lift<float> {
    static float of(float x) { return x; }
};

template <class T>
struct HarmonicParts {
    T q[5][6];       // d^m P_l / dz^m, zero for m > l
    T re[5], im[5];  // (x + iy)^m
    HarmonicParts(T x, T y, T z) {
        const auto c = [](float value) { return Lift<T>::of(value); };
        const T o = c(0), z2 = z * z;
        const T table[5][6] = {
            {c(1), o, o, o, o, o},
            {z, c(1), o, o, o, o},
            {c(1.5f) * z2 - c(0.5f), c(3) * z, c(3), o, o, o},
            {z * (c(2.5f) * z2 - c(1.5f)), c(7.5f) * z2 - c(1.5f), c(15) * z, c(15), o, o},
            {(c(4.375f) * z2 - c(3.75f)) * z2 + c(0.375f), z * (c(17.5f) * z2 - c(7.5f)),
             c(52.5f) * z2 - c(7.5f), c(105) * z, c(105), o}};
        for (int l = 0; l <= max_degree; ++l)
            for (int m = 0; m < 6; ++m) q[l][m] = table[l][m];
        re[0] = c(1), im[0] = o;
        for (int m = 1; m <= max_degree; ++m) {
            re[m] = x * re[m - 1] - y * im[m - 1];
            im[m] = x * im[m - 1] + y * re[m - 1];
        }
    }
};

// The first `count` harmonics (a square number of them) of a unit direction.
template <class T>
inline void harmonics(T x, T y, T z, int count, T* out) {
    const HarmonicParts<T> p(x, y, z);
    for (int l = 0; l * l < count; ++l) {
        out[l * l + l] = Lift<T>::of(harmonic_norm[l][0]) * p.q[l][0];
        for (int m = 1; m <= l; ++m) {
            const T height = Lift<T>::of(harmonic_norm[l][m]) * p.q[l][m];
            out[l * l + l + m] = height * p.re[m];
            out[l * l + l - m] = height * p.im[m];
        }
    }
}

// Their derivatives in x, y and z, each taken as if the other two were free.
template <class T>
inline void harmonics_slopes(T x, T y, T z, int count, T* dx, T* dy, T* dz) {
    const HarmonicParts<T> p(x, y, z);
    const T none = Lift<T>::of(0);
    for (int l = 0; l * l < count; ++l) {
        const int at = l * l + l;
        dx[at] = dy[at] = none;
        dz[at] = Lift<T>::of(harmonic_norm[l][0]) * p.q[l][1];
        for (int m = 1; m <= l; ++m) {
            const T height = Lift<T>::of(harmonic_norm[l][m] * m) * p.q[l][m];
            const T rise = Lift<T>::of(harmonic_norm[l][m]) * p.q[l][m + 1];
            dx[at + m] = height * p.re[m - 1];
            dy[at + m] = none - height * p.im[m - 1];
            dz[at + m] = rise * p.re[m];
            dx[at - m] = height * p.im[m - 1];
            dy[at - m] = height * p.re[m - 1];
            dz[at - m] = rise * p.im[m];
        }
    }
}

}  // namespace SPLAT_ISA
}  // namespace splat
