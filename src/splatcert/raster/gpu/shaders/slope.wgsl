// SPDX-License-Identifier: Apache-2.0
// uses planes
// Length of the luminance's gradient: central differences, one-sided at the border.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read_write> planes: array<f32>;

fn rise(p: u32, at: u32, size: u32, step: u32) -> f32 {
    if (size < 2u) { return 0.0; }
    let before = select(p, p - step, at > 0u);
    let after = select(p, p + step, at + 1u < size);
    let light = light_plane * picture.pixels;
    let d = planes[light + after] - planes[light + before];
    return select(d, 0.5 * d, at > 0u && at + 1u < size);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let p = number(group, groups) * 256u + lane;
    if (p >= picture.pixels) { return; }
    let along = vec2(rise(p, p % picture.width, picture.width, 1u),
                     rise(p, p / picture.width, picture.pixels / picture.width, picture.width));
    planes[slope_plane * picture.pixels + p] = length(along);
}
