// SPDX-License-Identifier: Apache-2.0
// constants: shift
// The next digit of each order statistic; after the last, its value.
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<storage, read_write> known: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> results: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    if (lane >= 10u) { return; }
    var rank = known[lane].y;
    var digit = 0u;
    for (; digit < 255u && counts[256u * lane + digit] < rank; digit++) {
        rank -= counts[256u * lane + digit];
    }
    let digits = known[lane].x | (digit << shift);
    known[lane] = vec2(digits, rank);
    for (var k = 0u; k < 256u; k++) { counts[256u * lane + k] = 0u; }
    if (shift == 0u) {
        let bits = digits ^ select(0xffffffffu, 0x80000000u, (digits & 0x80000000u) != 0u);
        results[9u + lane] = bitcast<f32>(bits);
    }
}
