// SPDX-License-Identifier: Apache-2.0
// Front to back over every drawn Gaussian, one thread per pixel.
struct Picture { width: u32, height: u32, drawn: u32, channels: u32 }

@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> footprints: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> values: array<f32>;
@group(0) @binding(3) var<storage, read_write> image: array<f32>;

const alpha_cap = 0.9900000095367432;
const alpha_floor = 1.0 / 255.0;
const stop = 1e-4;

@compute @workgroup_size(256)
fn blend(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let pixel = (group.y * groups.x + group.x) * 256u + lane;
    if (pixel >= picture.width * picture.height) { return; }
    let at = vec2(f32(pixel % picture.width), f32(pixel / picture.width)) + 0.5;
    var transmittance = 1.0;
    for (var g = 0u; g < picture.drawn; g++) {
        let place = footprints[2u * g];
        let conic = footprints[2u * g + 1u];
        let d = at - place.xy;
        let sigma = 0.5 * (conic.x * d.x * d.x + conic.z * d.y * d.y) + conic.y * d.x * d.y;
        let alpha = min(alpha_cap, place.z * exp(-sigma));
        if (alpha < alpha_floor) { continue; }
        let after = transmittance * (1.0 - alpha);
        if (after <= stop) { break; }
        for (var c = 0u; c < picture.channels; c++) {
            image[pixel * picture.channels + c] +=
                alpha * transmittance * values[g * picture.channels + c];
        }
        transmittance = after;
    }
}
