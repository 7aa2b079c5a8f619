// SPDX-License-Identifier: Apache-2.0
// uses projection
// One page of Gaussians: footprint, depth and index of each that is drawn, side by side.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> geometry: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> ranks: array<u32>;
@group(0) @binding(4) var<storage, read_write> records: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> depths: array<u32>;
@group(0) @binding(6) var<storage, read_write> gaussians: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (3u * i >= arrayLength(&geometry)) { return; }
    let at = first[0] + i;
    let m = ranks[at];
    if (ranks[at + 1u] == m) { return; }
    let head = geometry[3u * i];
    let found = project(camera, head.xyz, head.w, geometry[3u * i + 1u], geometry[3u * i + 2u].xyz);
    records[2u * m] = found.place;
    records[2u * m + 1u] = found.shape;
    // Depth sorts by its bits; below the last, 16 more from what rounding took.
    let high = found.depth.x;
    let step = bitcast<f32>(bitcast<u32>(high) + 1u) - high;
    depths[2u * m] = u32(clamp(found.depth.y / step + 0.5, 0.0, 1.0) * 65535.0);
    depths[2u * m + 1u] = bitcast<u32>(high);
    gaussians[m] = at;
}
