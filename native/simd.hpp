// SPDX-License-Identifier: Apache-2.0
// One vector of floats, in the width of the instruction set this file is compiled for.
//
// Every kernel is compiled once per instruction set, each time inside a namespace of
// its own (SPLAT_ISA), so no two versions of an inline function share a name.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
#include <immintrin.h>
#endif

namespace splat {
namespace SPLAT_ISA {

#if defined(SPLAT_AVX512)

struct Mask {
    __mmask16 m;
};
struct Vec {
    __m512 v;
    static constexpr int width = 16;
    static Vec all(float x) { return {_mm512_set1_ps(x)}; }
    static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void stream(float* p) const { _mm512_stream_ps(p, v); }
};
inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
inline Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
inline Mask operator>=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
inline Mask operator>(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Vec keep(Vec a, Mask m) { return {_mm512_maskz_mov_ps(m.m, a.v)}; }
inline Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.m & b.m)}; }
inline bool any(Mask m) { return m.m != 0; }
inline uint32_t bits(Mask m) { return m.m; }
inline float sum(Vec a) { return _mm512_reduce_add_ps(a.v); }
#define SPLAT_FAST_COMPRESS
inline int compress(Vec a, uint32_t chosen, float* out) {
    _mm512_storeu_ps(out, _mm512_maskz_compress_ps(static_cast<__mmask16>(chosen), a.v));
    return __builtin_popcount(chosen);
}
// A positive number as mantissa in [1, 2) and exponent.
inline Vec exponent_of(Vec a, Vec& mantissa) {
    mantissa = {_mm512_getmant_ps(a.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero)};
    return {_mm512_getexp_ps(a.v)};
}
inline Vec scale_by_power(Vec p, Vec shifted) {
    return {_mm512_castsi512_ps(_mm512_add_epi32(
        _mm512_castps_si512(p.v), _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23)))};
}

#elif defined(SPLAT_AVX2)

struct Mask {
    __m256 m;
};
struct Vec {
    __m256 v;
    static constexpr int width = 8;
    static Vec all(float x) { return {_mm256_set1_ps(x)}; }
    static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void stream(float* p) const { _mm256_stream_ps(p, v); }
};
inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
inline Mask operator>=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
inline Mask operator>(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Vec keep(Vec a, Mask m) { return {_mm256_and_ps(a.v, m.m)}; }
inline Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.m, b.m)}; }
inline uint32_t bits(Mask m) { return static_cast<uint32_t>(_mm256_movemask_ps(m.m)); }
inline bool any(Mask m) { return bits(m) != 0; }
inline float sum(Vec a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
#define SPLAT_FAST_SUM_EIGHT
// Sums of eight vectors at once: pairs are interleaved and added, three times over.
inline void sum_eight(const Vec* a, float* out) {
    __m256 pair[4], four[2];
    for (int k = 0; k < 4; ++k)
        pair[k] = _mm256_add_ps(_mm256_unpacklo_ps(a[2 * k].v, a[2 * k + 1].v),
                                _mm256_unpackhi_ps(a[2 * k].v, a[2 * k + 1].v));
    for (int k = 0; k < 2; ++k) {
        const __m256d x = _mm256_castps_pd(pair[2 * k]), y = _mm256_castps_pd(pair[2 * k + 1]);
        four[k] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),
                                _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
    }
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_permute2f128_ps(four[0], four[1], 0x20),
                                        _mm256_permute2f128_ps(four[0], four[1], 0x31)));
}
// For each set of lanes, their numbers in ascending order, one per byte.
struct CompressTable {
    uint64_t order[256] = {};
    constexpr CompressTable() {
        for (int chosen = 0; chosen < 256; ++chosen)
            for (int lane = 0, at = 0; lane < 8; ++lane)
                if (chosen >> lane & 1) order[chosen] |= uint64_t(lane) << 8 * at++;
    }
};
alignas(64) constexpr CompressTable compress_table;
#define SPLAT_FAST_COMPRESS
inline int compress(Vec a, uint32_t chosen, float* out) {
    const __m128i order =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(compress_table.order + chosen));
    _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(a.v, _mm256_cvtepu8_epi32(order)));
    return __builtin_popcount(chosen);
}
inline Vec exponent_of(Vec a, Vec& mantissa) {
    const __m256i word = _mm256_castps_si256(a.v), one = _mm256_castps_si256(_mm256_set1_ps(1.0f));
    const __m256i fraction = _mm256_and_si256(word, _mm256_set1_epi32(0x7fffff));
    mantissa = {_mm256_castsi256_ps(_mm256_or_si256(fraction, one))};
    return {
        _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(word, 23), _mm256_set1_epi32(127)))};
}
inline Vec scale_by_power(Vec p, Vec shifted) {
    return {_mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(p.v), _mm256_slli_epi32(_mm256_castps_si256(shifted.v), 23)))};
}

#else  // portable: pairs of 128-bit vectors, which every SSE2 and NEON machine has

typedef float Quad __attribute__((vector_size(16)));
typedef int32_t QuadInt __attribute__((vector_size(16)));
typedef uint32_t QuadBits __attribute__((vector_size(16)));
#ifndef SPLAT_PORTABLE_WIDTH
#define SPLAT_PORTABLE_WIDTH 8
#endif
constexpr int quads = SPLAT_PORTABLE_WIDTH / 4;

struct Mask {
    QuadInt m[quads];
};
struct Vec {
    Quad v[quads];
    static constexpr int width = SPLAT_PORTABLE_WIDTH;
    static Vec all(float x) {
        Vec r;
        for (int i = 0; i < quads; ++i) r.v[i] = Quad{x, x, x, x};
        return r;
    }
    static Vec load(const float* p) {
        Vec r;
        std::memcpy(r.v, p, sizeof(r.v));
        return r;
    }
    void store(float* p) const { std::memcpy(p, v, sizeof(v)); }
    void stream(float* p) const { store(p); }
};
#define SPLAT_MAP(result, expression)             \
    result r;                                     \
    for (int i = 0; i < quads; ++i) r.expression; \
    return r
inline Vec operator+(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] + b.v[i]); }
inline Vec operator-(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] - b.v[i]); }
inline Vec operator*(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] * b.v[i]); }
inline Vec operator/(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] / b.v[i]); }
inline Vec fma(Vec a, Vec b, Vec c) { SPLAT_MAP(Vec, v[i] = a.v[i] * b.v[i] + c.v[i]); }
inline Vec fnma(Vec a, Vec b, Vec c) { SPLAT_MAP(Vec, v[i] = c.v[i] - a.v[i] * b.v[i]); }
inline Vec min(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
inline Vec max(Vec a, Vec b) { SPLAT_MAP(Vec, v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline Vec abs(Vec a) { SPLAT_MAP(Vec, v[i] = (Quad)((QuadInt)a.v[i] & 0x7fffffff)); }
inline Vec sqrt(Vec a) {
    Vec r;
    for (int i = 0; i < quads; ++i)
        for (int k = 0; k < 4; ++k) r.v[i][k] = std::sqrt(a.v[i][k]);
    return r;
}
inline Mask operator>=(Vec a, Vec b) { SPLAT_MAP(Mask, m[i] = a.v[i] >= b.v[i]); }
inline Mask operator>(Vec a, Vec b) { SPLAT_MAP(Mask, m[i] = a.v[i] > b.v[i]); }
inline Mask operator<(Vec a, Vec b) { SPLAT_MAP(Mask, m[i] = a.v[i] < b.v[i]); }
inline Vec keep(Vec a, Mask b) { SPLAT_MAP(Vec, v[i] = (Quad)((QuadInt)a.v[i] & b.m[i])); }
inline Mask operator&(Mask a, Mask b) { SPLAT_MAP(Mask, m[i] = a.m[i] & b.m[i]); }
inline uint32_t bits(Mask b) {
    uint32_t r = 0;
    for (int i = 0; i < quads; ++i)
        for (int k = 0; k < 4; ++k) r |= (b.m[i][k] ? 1u : 0u) << (4 * i + k);
    return r;
}
inline bool any(Mask b) {
    QuadInt r = b.m[0];
    for (int i = 1; i < quads; ++i) r |= b.m[i];
    return (r[0] | r[1] | r[2] | r[3]) != 0;
}
inline float sum(Vec a) {
    Quad r = a.v[0];
    for (int i = 1; i < quads; ++i) r += a.v[i];
    return (r[0] + r[2]) + (r[1] + r[3]);
}
inline Vec exponent_of(Vec a, Vec& mantissa) {
    Vec r;
    for (int i = 0; i < quads; ++i) {
        const QuadInt word = (QuadInt)a.v[i];
        mantissa.v[i] = (Quad)((word & 0x7fffff) | 0x3f800000);
        for (int k = 0; k < 4; ++k) r.v[i][k] = static_cast<float>((word[k] >> 23) - 127);
    }
    return r;
}
inline Vec scale_by_power(Vec p, Vec shifted) {
    SPLAT_MAP(Vec, v[i] = (Quad)((QuadBits)p.v[i] + ((QuadBits)shifted.v[i] << 23)));
}
#undef SPLAT_MAP

#endif

// T (1 - alpha) with one rounding's error: T - T alpha would lose two digits at alpha = 0.99.
inline Vec attenuate(Vec T, Vec alpha) {
#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
    return fnma(T, alpha, T);
#else
    return T * (Vec::all(1.0f) - alpha);
#endif
}

#ifndef SPLAT_FAST_SUM_EIGHT
inline void sum_eight(const Vec* a, float* out) {
    for (int k = 0; k < 8; ++k) out[k] = sum(a[k]);
}
#endif

// Writes the chosen lanes one after the other and returns how many; up to a whole vector is
// overwritten from `out` on.
#ifndef SPLAT_FAST_COMPRESS
inline int compress(Vec a, uint32_t chosen, float* out) {
    float lane[Vec::width];
    a.store(lane);
    int n = 0;
    for (; chosen; chosen &= chosen - 1) out[n++] = lane[__builtin_ctz(chosen)];
    return n;
}
#endif

// 2^u for u in [-126, 127]. Relative error 2.4e-7: a degree-5 minimax polynomial on
// [-1/2, 1/2], the integer part added to the exponent bits. Adding 1.5 * 2^23 rounds to
// the nearest integer and leaves it in the low mantissa bits.
inline Vec exp2(Vec u) {
    const Vec shifter = Vec::all(12582912.0f);
    const Vec shifted = u + shifter;
    const Vec f = u - (shifted - shifter);
    Vec p = Vec::all(0.001327647203f);
    p = fma(p, f, Vec::all(0.00967554148f));
    p = fma(p, f, Vec::all(0.05550713275f));
    p = fma(p, f, Vec::all(0.2402211972f));
    p = fma(p, f, Vec::all(0.6931469671f));
    p = fma(p, f, Vec::all(1.000000072f));
    return scale_by_power(p, shifted);
}

// log2 of normal positive numbers to 2e-7: the series of atanh about 1, in (m - 1) / (m + 1).
inline Vec log2(Vec a) {
    const Vec one = Vec::all(1.0f);
    Vec m, e = exponent_of(a, m);
    const Mask high = m > Vec::all(1.41421356f);
    m = fnma(m, keep(Vec::all(0.5f), high), m);
    e = e + keep(one, high);
    const Vec s = (m - one) / (m + one), z = s * s;
    Vec p = Vec::all(0.320598898f);
    p = fma(p, z, Vec::all(0.412198583f));
    p = fma(p, z, Vec::all(0.577078016f));
    p = fma(p, z, Vec::all(0.961796694f));
    p = fma(p, z, Vec::all(2.885390082f));
    return fma(p, s, e);
}

// After the last of a thread's `stream`s, before another thread may read what they wrote.
inline void end_stream() {
#if defined(SPLAT_AVX512) || defined(SPLAT_AVX2)
    _mm_sfence();
#endif
}

}  // namespace SPLAT_ISA
}  // namespace splat
