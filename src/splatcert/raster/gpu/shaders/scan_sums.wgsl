// SPDX-License-Identifier: Apache-2.0
// uses blocks
// The sum of each block.
@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = number(group, groups);
    if (block >= arrayLength(&sums)) { return; }
    let first = (block * 256u + lane) * each;
    var mine = 0u;
    for (var k = first; k < min(first + each, arrayLength(&numbers)); k++) {
        mine = add(mine, numbers[k]);
    }
    let sum = up_to(lane, mine);
    if (lane == 255u) { sums[block] = sum; }
}
