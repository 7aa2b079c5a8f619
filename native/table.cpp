// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set as a table.
#include "isa.hpp"
#include "simd.hpp"

#define SPLAT_JOIN2(a, b) a##b
#define SPLAT_JOIN(a, b) SPLAT_JOIN2(a, b)
#define SPLAT_TEXT2(a) #a
#define SPLAT_TEXT(a) SPLAT_TEXT2(a)

namespace splat {

const Kernels* SPLAT_JOIN(kernels_, SPLAT_ISA)() {
    using namespace SPLAT_ISA;
    static const Kernels table = {SPLAT_TEXT(SPLAT_ISA),
                                  Vec::width,
                                  prepare,
                                  composite,
                                  scatter,
                                  normal,
                                  count,
                                  footprint,
                                  contributors,
                                  backward,
                                  shade,
                                  shade_backward,
                                  loss,
                                  adam,
                                  &field_kernels,
                                  &query_kernels,
                                  ask_witnesses};
    return &table;
}

}  // namespace splat
