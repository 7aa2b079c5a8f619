// SPDX-License-Identifier: Apache-2.0
// uses planes
// Pixels below an opacity, below an exposure, beyond an angle.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> planes: array<f32>;
@group(0) @binding(2) var<storage, read> limits: array<f32>;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let p = number(group, groups) * 256u + lane;
    if (p >= picture.pixels) { return; }
    let P = picture.pixels;
    if (planes[alpha_plane * P + p] < limits[0]) { atomicAdd(&counts[0], 1u); }
    if (planes[exposure_plane * P + p] < limits[1]) { atomicAdd(&counts[1], 1u); }
    if (planes[angle_plane * P + p] > limits[2]) { atomicAdd(&counts[2], 1u); }
}
