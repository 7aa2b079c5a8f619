// SPDX-License-Identifier: Apache-2.0
#include "dispatch.hpp"

#include <atomic>
#include <cstring>

namespace splat {
namespace {

bool supported(const char* name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!std::strcmp(name, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (!std::strcmp(name, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return !std::strcmp(name, "portable") || !std::strcmp(name, "portable16") ||
           !std::strcmp(name, "scalar");
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> all;
#if defined(__x86_64__)
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
