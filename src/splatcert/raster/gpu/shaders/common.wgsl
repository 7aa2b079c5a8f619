// SPDX-License-Identifier: Apache-2.0
// Constants of docs/conventions.md, and the number of a workgroup in a dispatch of two dimensions.
const tile_size = 16u;
const near_plane = 0.01;
const low_pass = 0.3;
const alpha_cap = 0.9900000095367432;
const alpha_floor = 1.0 / 255.0;
const stop_transmittance = 1e-4;
const compensation_floor = 2.5e-5;

struct Camera {
    rotation: array<vec4<f32>, 3>,  // rows, and what rounding took from them
    rotation_low: array<vec4<f32>, 3>,
    centre: vec4<f32>,
    centre_low: vec4<f32>,
    focal: vec2<f32>,
    focal_low: vec2<f32>,
    principal: vec2<f32>,
    principal_low: vec2<f32>,
    slopes: vec4<f32>,  // least and largest x/z, then y/z, that the Jacobian may take
    size: vec2<u32>,  // pixels of this band
    first_row: u32,  // of this band in the picture
    antialiased: u32,
    zero: u32,
}

fn number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// Bits instead of a comparison: a compiler may assume that there is no infinity.
fn finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
