// SPDX-License-Identifier: Apache-2.0
// uses common
// Sums within a workgroup's block of 2,048 numbers; a sum that would overflow stays the largest.
const each = 8u;
var<workgroup> running: array<u32, 256>;

fn add(a: u32, b: u32) -> u32 {
    let s = a + b;
    return select(s, 0xffffffffu, s < a);
}

// The sum over all lanes up to and including this one.
fn up_to(lane: u32, mine: u32) -> u32 {
    running[lane] = mine;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
        var sum = running[lane];
        if (lane >= step) { sum = add(sum, running[lane - step]); }
        workgroupBarrier();
        running[lane] = sum;
        workgroupBarrier();
    }
    return running[lane];
}
