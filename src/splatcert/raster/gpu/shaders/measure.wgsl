// SPDX-License-Identifier: Apache-2.0
// uses tiles
// How many tiles each drawn Gaussian reaches, nearest first.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let j = number(group, groups) * 256u + lane;
    if (j >= arrayLength(&order)) { return; }
    let place = records[2u * order[j]];
    let shape = records[2u * order[j] + 1u];
    let box = box_of(camera, place, shape);
    var count = 0u;
    for (var y = box.first.y; y <= box.last.y; y++) {
        for (var x = box.first.x; x <= box.last.x; x++) {
            if (reaches(vec2(x, y), place, shape)) { count++; }
        }
    }
    counts[j] = count;
}
