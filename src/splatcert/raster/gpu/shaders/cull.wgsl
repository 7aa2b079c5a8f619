// SPDX-License-Identifier: Apache-2.0
// uses projection
// One page of Gaussians: 1 for those that are drawn.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> geometry: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> drawn: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (3u * i >= arrayLength(&geometry)) { return; }
    let head = geometry[3u * i];
    let found = project(camera, head.xyz, head.w, geometry[3u * i + 1u], geometry[3u * i + 2u].xyz);
    drawn[first[0] + i] = select(0u, 1u, found.drawn);
}
