// SPDX-License-Identifier: Apache-2.0
#include "dispatch.hpp"

#include <atomic>
#include <cstring>

#if defined(__x86_64__) && defined(_WIN32)
#include <cpuid.h>
#endif

namespace splat {
namespace {

#if defined(__x86_64__) && defined(_WIN32)
// What `__builtin_cpu_supports` asks, without the run-time library that Windows does not link:
// the processor's word (leaves 1 and 7), and whether the system saves the registers (XCR0).
bool has_all(uint32_t leaf7_bits, uint32_t saved) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (bit_FMA | bit_OSXSAVE)) != (bit_FMA | bit_OSXSAVE))
        return false;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (b & leaf7_bits) == leaf7_bits;
}
bool has_avx512() {
    return has_all(bit_AVX512F | bit_AVX512VL | bit_AVX512DQ | bit_AVX512BW, 0xe6);
}
bool has_avx2() { return has_all(bit_AVX2, 0x06); }
#elif defined(__x86_64__)
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

bool supported(const char* name) {
#if defined(__x86_64__)
    if (!std::strcmp(name, "avx512")) return has_avx512();
    if (!std::strcmp(name, "avx2")) return has_avx2();
#endif
    return !std::strcmp(name, "portable") || !std::strcmp(name, "portable16") ||
           !std::strcmp(name, "scalar");
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> all;
#if defined(__x86_64__)
#if !defined(_WIN32)
    __builtin_cpu_init();
#endif
    all = {kernels_avx512(), kernels_avx2()};
#endif
    all.insert(all.end(), {kernels_portable(), kernels_portable16(), kernels_scalar()});
    std::vector<const Kernels*> usable;
    for (const Kernels* k : all)
        if (supported(k->name)) usable.push_back(k);
    return usable;
}

const Kernels& kernels() {
    const Kernels* k = chosen.load();
    if (!k) chosen.store(k = available_kernels().front());
    return *k;
}

bool choose_kernels(const std::string& name) {
    for (const Kernels* k : available_kernels())
        if (name == k->name) {
            chosen.store(k);
            return true;
        }
    return false;
}

}  // namespace splat
