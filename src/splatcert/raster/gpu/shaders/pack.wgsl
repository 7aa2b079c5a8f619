// SPDX-License-Identifier: Apache-2.0
// uses harmonics, drawn
// constants: degree, field_degree
// One page of Gaussians: what a query composites of each that is drawn, as query_maps.CHANNELS.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> geometry: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> ranks: array<u32>;
@group(0) @binding(4) var<storage, read> sh: array<f32>;
@group(0) @binding(5) var<storage, read> depths: array<u32>;
@group(0) @binding(6) var<storage, read> traits: array<f32>;
@group(0) @binding(7) var<storage, read_write> values: array<vec4<f32>>;

// The arc tangent of two numbers, the first not negative (Cephes, 2 ulp; WGSL allows 4,096).
fn angle_of(across: f32, along: f32) -> f32 {
    let size = abs(along);
    let steep = across > size;
    let t = select(across / max(size, 1e-37), size / max(across, 1e-37), steep);
    let far = t > 0.41421356;
    let x = select(t, (t - 1.0) / (t + 1.0), far);
    let z = x * x;
    let tail = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z -
               3.33329491539e-1;
    let near = select(0.0, 0.78539816, far) + (tail * z * x + x);
    let acute = select(near, 1.57079633 - near, steep);
    return select(acute, 3.14159265 - acute, along < 0.0);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (!drawn(i)) { return; }
    let m = ranks[first[0] + i];
    let d = normalize(away(camera, geometry[3u * i].xyz));
    var phi = harmonics(d, degree);
    let count = (degree + 1u) * (degree + 1u);
    var colour = vec3(0.5);
    for (var k = 0u; k < count; k++) {
        let at = 3u * (i * count + k);
        colour += phi[k] * vec3(sh[at], sh[at + 1u], sh[at + 2u]);
    }
    colour = max(colour, vec3(0.0));

    let terms = (field_degree + 1u) * (field_degree + 1u);
    let row = i * (6u + terms);
    let seen = vec3(traits[row + 3u], traits[row + 4u], traits[row + 5u]);
    let along = -dot(d, seen);
    let across = length(cross(d, seen));
    let angle = select(angle_of(across, along), 3.14159265, along == 0.0 && across == 0.0);
    phi = harmonics(-d, field_degree);
    var field = 0.0;
    for (var k = 0u; k < terms; k++) { field += phi[k] * traits[row + 6u + k]; }
    values[3u * m] = vec4(colour, 1.0);
    values[3u * m + 1u] = vec4(bitcast<f32>(depths[2u * m + 1u]), traits[row], angle,
                               traits[row + 1u]);
    values[3u * m + 2u] = vec4(field, traits[row + 2u], 0.0, 0.0);
}
