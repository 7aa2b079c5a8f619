// SPDX-License-Identifier: Apache-2.0
// Real spherical harmonics of degree 0 to 4 in the order and signs of 3DGS files:
// harmonic (l, +-m) = N_lm * d^m P_l / dz^m * (Re or Im)(x + iy)^m.
#pragma once

#include "view.hpp"

namespace splat {
namespace SPLAT_ISA {

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

// T is float, or a vector of floats: one lane per direction.
template <class T>
struct HarmonicParts {
    T q[5][6];       // d^m P_l / dz^m, zero for m > l
    T re[5], im[5];  // (x + iy)^m
};

template <class T>
inline HarmonicParts<T> harmonic_parts(T x, T y, T z) {
    const T z2 = z * z, o = T{}, one = o + 1.0f;
    HarmonicParts<T> p = {{{one, o, o, o, o, o},
                           {z, one, o, o, o, o},
                           {1.5f * z2 - 0.5f, 3.0f * z, o + 3.0f, o, o, o},
                           {z * (2.5f * z2 - 1.5f), 7.5f * z2 - 1.5f, 15.0f * z, o + 15.0f, o, o},
                           {(4.375f * z2 - 3.75f) * z2 + 0.375f, z * (17.5f * z2 - 7.5f),
                            52.5f * z2 - 7.5f, 105.0f * z, o + 105.0f, o}},
                          {one, o, o, o, o},
                          {o, o, o, o, o}};
    for (int m = 1; m <= max_degree; ++m) {
        p.re[m] = x * p.re[m - 1] - y * p.im[m - 1];
        p.im[m] = x * p.im[m - 1] + y * p.re[m - 1];
    }
    return p;
}

// The first `count` harmonics (a square number of them) of a unit direction.
template <class T>
inline void harmonics(T x, T y, T z, int count, T* out) {
    const HarmonicParts<T> p = harmonic_parts(x, y, z);
    for (int l = 0; l * l < count; ++l) {
        out[l * l + l] = harmonic_norm[l][0] * p.q[l][0];
        for (int m = 1; m <= l; ++m) {
            const T height = harmonic_norm[l][m] * p.q[l][m];
            out[l * l + l + m] = height * p.re[m];
            out[l * l + l - m] = height * p.im[m];
        }
    }
}

// Their derivatives in x, y and z, each taken as if the other two were free.
inline void harmonics_slopes(float x, float y, float z, int count, float* dx, float* dy,
                             float* dz) {
    const HarmonicParts<float> p = harmonic_parts(x, y, z);
    for (int l = 0; l * l < count; ++l) {
        const int at = l * l + l;
        dx[at] = dy[at] = 0;
        dz[at] = harmonic_norm[l][0] * p.q[l][1];
        for (int m = 1; m <= l; ++m) {
            const float height = harmonic_norm[l][m] * p.q[l][m] * m;
            const float rise = harmonic_norm[l][m] * p.q[l][m + 1];
            dx[at + m] = height * p.re[m - 1];
            dy[at + m] = -height * p.im[m - 1];
            dz[at + m] = rise * p.re[m];
            dx[at - m] = height * p.im[m - 1];
            dy[at - m] = height * p.re[m - 1];
            dz[at - m] = rise * p.im[m];
        }
    }
}

}  // namespace SPLAT_ISA
}  // namespace splat
