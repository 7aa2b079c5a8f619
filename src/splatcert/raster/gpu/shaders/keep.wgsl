// SPDX-License-Identifier: Apache-2.0
// uses common
// Sets the pixels of an image to zero that a mask leaves out.
@group(0) @binding(0) var<storage, read> mask: array<u32>;
@group(0) @binding(1) var<storage, read_write> image: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (i < arrayLength(&image) && mask[i] == 0u) { image[i] = vec4(0.0); }
}
