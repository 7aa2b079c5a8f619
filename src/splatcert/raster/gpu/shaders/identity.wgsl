// SPDX-License-Identifier: Apache-2.0
// uses common
// 0, 1, 2, ...
@group(0) @binding(0) var<storage, read_write> order: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (i < arrayLength(&order)) { order[i] = i; }
}
