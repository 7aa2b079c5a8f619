// SPDX-License-Identifier: Apache-2.0
// uses harmonics, drawn
// constants: degree
// One page of Gaussians: the colour towards the camera of each that is drawn.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> geometry: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> ranks: array<u32>;
@group(0) @binding(4) var<storage, read> sh: array<f32>;
@group(0) @binding(5) var<storage, read_write> colours: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (!drawn(i)) { return; }
    var phi = harmonics(normalize(away(camera, geometry[3u * i].xyz)), degree);
    let count = (degree + 1u) * (degree + 1u);
    var colour = vec3(0.5);
    for (var k = 0u; k < count; k++) {
        let at = 3u * (i * count + k);
        colour += phi[k] * vec3(sh[at], sh[at + 1u], sh[at + 2u]);
    }
    colours[ranks[first[0] + i]] = vec4(max(colour, vec3(0.0)), 1.0);
}
