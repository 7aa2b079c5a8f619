// SPDX-License-Identifier: Apache-2.0
// Drawn Gaussians from front to back: a stable radix sort, the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstring>

#include "pool.hpp"
#include "view.hpp"

namespace splat {
namespace SPLAT_ISA {

struct Key {
    uint64_t depth;
    uint32_t index;  // ascending before the sort
};

// Orders by camera z to 2^-38 relative: 44 bits of the double, counted from the near plane.
inline uint64_t depth_key(double z) {
    uint64_t raw, base;
    const double nearest = near_plane;
    std::memcpy(&raw, &z, 8);
    std::memcpy(&base, &nearest, 8);
    const uint64_t key = (raw - base) >> 14;
    const uint64_t limit = (uint64_t(1) << 44) - 1;
    return key < limit ? key : limit;
}

constexpr int digit_bits = 11, digit_buckets = 1 << digit_bits, digits = 4;
constexpr std::size_t keys_in_cache = std::size_t(1) << 18;

inline uint32_t digit_of(const Key& key, int digit) {
    return static_cast<uint32_t>(key.depth >> digit * digit_bits) & (digit_buckets - 1);
}

// Keys in stable order of one digit; `first`, if asked for, says where each bucket begins. Each
// chunk counts and moves its own keys, so the result is that of the sequential algorithm.
inline void move_by_digit(const Array<Key>& keys, int digit, Array<uint32_t>& counts,
                          Array<Key>& out, uint32_t* first = nullptr) {
    constexpr int chunk = 1 << 15;
    const std::size_t n = keys.size;
    const int chunks = static_cast<int>((n + chunk - 1) / chunk);
    counts.resize(static_cast<std::size_t>(chunks) * digit_buckets);
    const auto for_chunks = [&](auto&& body) {
        parallel_for(chunks, [&](int c, int) {
            uint32_t* mine = counts.data + static_cast<std::size_t>(c) * digit_buckets;
            body(mine, static_cast<std::size_t>(c) * chunk,
                 std::min(n, static_cast<std::size_t>(c + 1) * chunk));
        });
    };
    for_chunks([&](uint32_t* mine, std::size_t begin, std::size_t end) {
        std::memset(mine, 0, digit_buckets * sizeof(uint32_t));
        for (std::size_t i = begin; i < end; ++i) ++mine[digit_of(keys[i], digit)];
    });
    uint32_t position = 0;
    for (int b = 0; b < digit_buckets; ++b) {
        if (first) first[b] = position;
        for (int c = 0; c < chunks; ++c) {
            uint32_t& slot = counts[static_cast<std::size_t>(c) * digit_buckets + b];
            const uint32_t here = slot;
            slot = position;
            position += here;
        }
    }
    for_chunks([&](uint32_t* mine, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) out[mine[digit_of(keys[i], digit)]++] = keys[i];
    });
}

// Sorts keys that share the highest digit by the other three, into `out`; overwrites the keys.
inline void sort_bucket(Key* keys, std::size_t count, Key* out) {
    constexpr std::size_t few = 1024;  // for which counting would take longer
    if (count < few) {
        std::sort(keys, keys + count, [](const Key& a, const Key& b) {
            return a.depth != b.depth ? a.depth < b.depth : a.index < b.index;
        });
        std::copy(keys, keys + count, out);
        return;
    }
    uint32_t next[digits - 1][digit_buckets] = {};
    for (std::size_t i = 0; i < count; ++i)
        for (int digit = 0; digit < digits - 1; ++digit) ++next[digit][digit_of(keys[i], digit)];
    for (int digit = 0; digit < digits - 1; ++digit) {
        uint32_t position = 0;
        for (uint32_t& slot : next[digit]) {
            const uint32_t here = slot;
            slot = position;
            position += here;
        }
        for (std::size_t i = 0; i < count; ++i)
            out[next[digit][digit_of(keys[i], digit)]++] = keys[i];
        std::swap(keys, out);
    }
}

// Four passes, one per digit. Where no cache holds the keys, only the first one goes through
// memory: it brings together those of similar depth, and they are sorted where they are.
inline void sort_by_depth(Array<Key>& keys, Array<Key>& spare) {
    Array<uint32_t> counts;
    if (keys.size <= keys_in_cache) {
        for (int digit = 0; digit < digits; ++digit) {
            move_by_digit(keys, digit, counts, spare);
            std::swap(keys.data, spare.data);
            std::swap(keys.capacity, spare.capacity);
        }
        return;
    }
    uint32_t first[digit_buckets + 1];
    move_by_digit(keys, digits - 1, counts, spare, first);
    first[digit_buckets] = static_cast<uint32_t>(keys.size);
    parallel_for(digit_buckets, [&](int b, int) {
        sort_bucket(spare.data + first[b], first[b + 1] - first[b], keys.data + first[b]);
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
