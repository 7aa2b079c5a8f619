// SPDX-License-Identifier: Apache-2.0
// uses blocks
// Each number becomes the sum of all before it, given that sum for the start of each block.
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(1) var<storage, read> starts: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = number(group, groups);
    if (block >= arrayLength(&starts)) { return; }
    let first = (block * 256u + lane) * each;
    let last = min(first + each, arrayLength(&numbers));
    var mine = 0u;
    for (var k = first; k < last; k++) { mine = add(mine, numbers[k]); }
    _ = up_to(lane, mine);
    var sum = starts[block];
    if (lane > 0u) { sum = add(sum, running[lane - 1u]); }
    for (var k = first; k < last; k++) {
        let here = numbers[k];
        numbers[k] = sum;
        sum = add(sum, here);
    }
}
