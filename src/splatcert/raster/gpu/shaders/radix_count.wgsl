// SPDX-License-Identifier: Apache-2.0
// uses common
// constants: words, word, shift
// How often each digit occurs in each block of 4,096 entries, digit by digit.
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
var<workgroup> tally: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = number(group, groups);
    let blocks = arrayLength(&counts) / 256u;
    if (block >= blocks) { return; }
    atomicStore(&tally[lane], 0u);  // not every driver does
    workgroupBarrier();
    for (var round = 0u; round < 16u; round++) {
        let i = block * 4096u + round * 256u + lane;
        if (i < arrayLength(&order)) {
            atomicAdd(&tally[(keys[order[i] * words + word] >> shift) & 255u], 1u);
        }
    }
    workgroupBarrier();
    counts[lane * blocks + block] = atomicLoad(&tally[lane]);
}
