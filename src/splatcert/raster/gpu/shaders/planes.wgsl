// SPDX-License-Identifier: Apache-2.0
// uses common
// Pictures of P pixels, one after the other; the first has three channels.
struct Picture {
    background: vec3<f32>,
    floor: f32,
    width: u32,
    pixels: u32,  // P
}
const field_plane = 3u;
const alpha_plane = 4u;
const light_plane = 5u;
const exposure_plane = 6u;
const angle_plane = 7u;
const spread_plane = 8u;
const depth_plane = 9u;
const residual_plane = 10u;
const slope_plane = 11u;

// Those that are averaged: of the first five, percentiles are taken too.
fn described(k: u32) -> u32 {
    var planes = array<u32, 8>(alpha_plane, slope_plane, exposure_plane, angle_plane, spread_plane,
                               depth_plane, field_plane, residual_plane);
    return planes[k];
}
