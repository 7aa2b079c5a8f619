// SPDX-License-Identifier: Apache-2.0
// uses planes
// constants: into
// Means from the sums of all blocks, one workgroup per plane.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> results: array<f32>;
var<workgroup> shared_sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let plane = number(group, groups);
    let blocks = (picture.pixels + 4095u) / 4096u;
    if (plane * blocks >= arrayLength(&sums)) { return; }
    var sum = 0.0;
    for (var k = lane; k < blocks; k += 256u) { sum += sums[plane * blocks + k]; }
    shared_sums[lane] = sum;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if (lane < half) { shared_sums[lane] += shared_sums[lane + half]; }
        workgroupBarrier();
    }
    if (lane == 0u) { results[into + plane] = shared_sums[0] / f32(picture.pixels); }
}
