// SPDX-License-Identifier: Apache-2.0
// uses common
// The sum over the tiles of each Gaussian, in the order in which its entries were made.
@group(0) @binding(0) var<storage, read> order: array<u32>;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> sums: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let j = number(group, groups) * 256u + lane;
    if (j >= arrayLength(&order)) { return; }
    var sum = vec4(0.0);
    for (var e = offsets[j]; e < offsets[j + 1u]; e++) { sum += parts[e]; }
    sums[order[j]] = sum;
}
