// SPDX-License-Identifier: Apache-2.0
// Bytes of a picture at a place per lane: several pixels are read at once, wherever they lie.
// Plain loads, put in order in registers, take half the time of gather instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {

// Bytes from the start of a picture, one number per lane.
struct Places {
#if defined(SPLAT_AVX512)
    __m512i v;
    static Places truncated(Vec a) { return {_mm512_cvttps_epi32(a.v)}; }
    Places times(int n) const { return {_mm512_mullo_epi32(v, _mm512_set1_epi32(n))}; }
    Places operator+(Places b) const { return {_mm512_add_epi32(v, b.v)}; }
    Vec values() const { return {_mm512_cvtepi32_ps(v)}; }
#elif defined(SPLAT_AVX2)
    __m256i v;
    static Places truncated(Vec a) { return {_mm256_cvttps_epi32(a.v)}; }
    Places times(int n) const { return {_mm256_mullo_epi32(v, _mm256_set1_epi32(n))}; }
    Places operator+(Places b) const { return {_mm256_add_epi32(v, b.v)}; }
    Vec values() const { return {_mm256_cvtepi32_ps(v)}; }
#else
    int32_t v[Vec::width];
    static Places truncated(Vec a) {
        float lane[Vec::width];
        a.store(lane);
        Places r;
        for (int k = 0; k < Vec::width; ++k) r.v[k] = static_cast<int32_t>(lane[k]);
        return r;
    }
    Places times(int n) const {
        Places r;
        for (int k = 0; k < Vec::width; ++k) r.v[k] = v[k] * n;
        return r;
    }
    Places operator+(const Places& b) const {
        Places r;
        for (int k = 0; k < Vec::width; ++k) r.v[k] = v[k] + b.v[k];
        return r;
    }
    Vec values() const {
        float lane[Vec::width];
        for (int k = 0; k < Vec::width; ++k) lane[k] = static_cast<float>(v[k]);
        return Vec::load(lane);
    }
#endif
};

// Twelve bytes of each lane; sixteen are read. Some of their bits as numbers.
struct Texels {
#if defined(SPLAT_AVX512)
    __m512i words[3];
    Texels(const uint8_t* from, Places at) {
        alignas(64) int32_t place[16];
        _mm512_store_si512(place, at.v);
        __m512i part[4];  // lanes j, 4 + j, 8 + j and 12 + j
        for (int j = 0; j < 4; ++j) {
            const __m512i one = _mm512_castsi128_si512(load(from + place[j]));
            const __m512i two = _mm512_inserti32x4(one, load(from + place[4 + j]), 1);
            const __m512i three = _mm512_inserti32x4(two, load(from + place[8 + j]), 2);
            part[j] = _mm512_inserti32x4(three, load(from + place[12 + j]), 3);
        }
        const __m512i a = _mm512_unpacklo_epi32(part[0], part[1]);
        const __m512i b = _mm512_unpacklo_epi32(part[2], part[3]);
        words[0] = _mm512_unpacklo_epi64(a, b);
        words[1] = _mm512_unpackhi_epi64(a, b);
        words[2] = _mm512_unpacklo_epi64(_mm512_unpackhi_epi32(part[0], part[1]),
                                         _mm512_unpackhi_epi32(part[2], part[3]));
    }
    template <int First, int Count>
    Vec bits() const {
        const __m512i word = _mm512_srli_epi32(words[First / 32], First % 32);
        return {_mm512_cvtepi32_ps(_mm512_and_si512(word, _mm512_set1_epi32((1 << Count) - 1)))};
    }

private:
    static __m128i load(const uint8_t* p) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    }
#elif defined(SPLAT_AVX2)
    __m256i words[3];
    Texels(const uint8_t* from, Places at) {
        alignas(32) int32_t place[8];
        _mm256_store_si256(reinterpret_cast<__m256i*>(place), at.v);
        __m256i part[4];  // lanes j and 4 + j
        for (int j = 0; j < 4; ++j)
            part[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(load(from + place[j])),
                                              load(from + place[4 + j]), 1);
        const __m256i a = _mm256_unpacklo_epi32(part[0], part[1]);
        const __m256i b = _mm256_unpacklo_epi32(part[2], part[3]);
        words[0] = _mm256_unpacklo_epi64(a, b);
        words[1] = _mm256_unpackhi_epi64(a, b);
        words[2] = _mm256_unpacklo_epi64(_mm256_unpackhi_epi32(part[0], part[1]),
                                         _mm256_unpackhi_epi32(part[2], part[3]));
    }
    template <int First, int Count>
    Vec bits() const {
        const __m256i word = _mm256_srli_epi32(words[First / 32], First % 32);
        return {_mm256_cvtepi32_ps(_mm256_and_si256(word, _mm256_set1_epi32((1 << Count) - 1)))};
    }

private:
    static __m128i load(const uint8_t* p) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    }
#else
    uint32_t words[3][Vec::width];
    Texels(const uint8_t* from, const Places& at) {
        for (int k = 0; k < Vec::width; ++k)
            for (int j = 0; j < 3; ++j)
                std::memcpy(words[j] + k, from + at.v[k] + 4 * j, sizeof(uint32_t));
    }
    template <int First, int Count>
    Vec bits() const {
        float lane[Vec::width];
        for (int k = 0; k < Vec::width; ++k)
            lane[k] = static_cast<float>(words[First / 32][k] >> First % 32 & ((1u << Count) - 1));
        return Vec::load(lane);
    }
#endif
};

}  // namespace SPLAT_ISA
}  // namespace splat
