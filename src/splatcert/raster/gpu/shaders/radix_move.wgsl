// SPDX-License-Identifier: Apache-2.0
// uses common
// constants: words, word, shift
// Moves each entry behind all with a smaller digit, and behind those before it with the same.
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> sorted: array<u32>;
var<workgroup> next: array<u32, 256>;
var<workgroup> marks: array<atomic<u32>, 2048>;  // eight words of lanes for each digit

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = number(group, groups);
    let blocks = arrayLength(&starts) / 256u;
    if (block >= blocks) { return; }
    next[lane] = starts[lane * blocks + block];
    for (var round = 0u; round < 16u; round++) {
        for (var k = 0u; k < 8u; k++) { atomicStore(&marks[lane * 8u + k], 0u); }
        workgroupBarrier();
        let i = block * 4096u + round * 256u + lane;
        let present = i < arrayLength(&order);
        var entry = 0u;
        var digit = 0u;
        if (present) {
            entry = order[i];
            digit = (keys[entry * words + word] >> shift) & 255u;
            atomicOr(&marks[digit * 8u + lane / 32u], 1u << (lane % 32u));
        }
        workgroupBarrier();
        if (present) {
            var rank = countOneBits(atomicLoad(&marks[digit * 8u + lane / 32u]) &
                                    ((1u << (lane % 32u)) - 1u));
            for (var k = 0u; k < lane / 32u; k++) {
                rank += countOneBits(atomicLoad(&marks[digit * 8u + k]));
            }
            sorted[next[digit] + rank] = entry;
        }
        workgroupBarrier();
        for (var k = 0u; k < 8u; k++) {
            next[lane] += countOneBits(atomicLoad(&marks[lane * 8u + k]));
        }
        workgroupBarrier();
    }
}
