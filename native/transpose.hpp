// SPDX-License-Identifier: Apache-2.0
// A square of as many vectors as a vector has lanes, transposed in place. Nothing is computed,
// so no bit changes.
#pragma once

#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {

#if defined(SPLAT_AVX512)

constexpr bool transposes = true;
// Pairs of rows, then pairs of pairs; then 128-bit lanes change places.
inline void transpose(Vec* a) {
    __m512 four[16];
    for (int k = 0; k < 16; k += 4) {
        const __m512d even_low = _mm512_castps_pd(_mm512_unpacklo_ps(a[k].v, a[k + 1].v)),
                      even_high = _mm512_castps_pd(_mm512_unpackhi_ps(a[k].v, a[k + 1].v)),
                      odd_low = _mm512_castps_pd(_mm512_unpacklo_ps(a[k + 2].v, a[k + 3].v)),
                      odd_high = _mm512_castps_pd(_mm512_unpackhi_ps(a[k + 2].v, a[k + 3].v));
        four[k] = _mm512_castpd_ps(_mm512_unpacklo_pd(even_low, odd_low));
        four[k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(even_low, odd_low));
        four[k + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(even_high, odd_high));
        four[k + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(even_high, odd_high));
    }
    for (int c = 0; c < 4; ++c) {
        const __m512 x = _mm512_shuffle_f32x4(four[c], four[4 + c], 0x44),
                     y = _mm512_shuffle_f32x4(four[8 + c], four[12 + c], 0x44),
                     z = _mm512_shuffle_f32x4(four[c], four[4 + c], 0xee),
                     w = _mm512_shuffle_f32x4(four[8 + c], four[12 + c], 0xee);
        a[c].v = _mm512_shuffle_f32x4(x, y, 0x88);
        a[4 + c].v = _mm512_shuffle_f32x4(x, y, 0xdd);
        a[8 + c].v = _mm512_shuffle_f32x4(z, w, 0x88);
        a[12 + c].v = _mm512_shuffle_f32x4(z, w, 0xdd);
    }
}

#elif defined(SPLAT_AVX2)

constexpr bool transposes = true;
inline void transpose(Vec* a) {
    __m256 four[8];
    for (int k = 0; k < 8; k += 4) {
        const __m256d even_low = _mm256_castps_pd(_mm256_unpacklo_ps(a[k].v, a[k + 1].v)),
                      even_high = _mm256_castps_pd(_mm256_unpackhi_ps(a[k].v, a[k + 1].v)),
                      odd_low = _mm256_castps_pd(_mm256_unpacklo_ps(a[k + 2].v, a[k + 3].v)),
                      odd_high = _mm256_castps_pd(_mm256_unpackhi_ps(a[k + 2].v, a[k + 3].v));
        four[k] = _mm256_castpd_ps(_mm256_unpacklo_pd(even_low, odd_low));
        four[k + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(even_low, odd_low));
        four[k + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(even_high, odd_high));
        four[k + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(even_high, odd_high));
    }
    for (int c = 0; c < 4; ++c) {
        a[c].v = _mm256_permute2f128_ps(four[c], four[4 + c], 0x20);
        a[4 + c].v = _mm256_permute2f128_ps(four[c], four[4 + c], 0x31);
    }
}

#else

// Without shuffles it gains nothing: callers move floats one by one instead.
constexpr bool transposes = false;
inline void transpose(Vec*) {}

#endif

}  // namespace SPLAT_ISA
}  // namespace splat
