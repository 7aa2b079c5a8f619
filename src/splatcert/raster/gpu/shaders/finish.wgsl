// SPDX-License-Identifier: Apache-2.0
// uses planes
// Picture, field and maps of one band from its composited channels.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> camera: Camera;
@group(0) @binding(2) var<storage, read> image: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> planes: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (3u * i >= arrayLength(&image)) { return; }
    let shown = image[3u * i];
    let maps = image[3u * i + 1u] / max(shown.w, 1e-6);
    let rest = image[3u * i + 2u];
    let colour = clamp(shown.xyz + (1.0 - shown.w) * picture.background, vec3(0.0), vec3(1.0));
    let p = camera.first_row * picture.width + i;
    let P = picture.pixels;
    planes[3u * p] = colour.x;
    planes[3u * p + 1u] = colour.y;
    planes[3u * p + 2u] = colour.z;
    planes[field_plane * P + p] = max(rest.x, picture.floor);
    planes[alpha_plane * P + p] = shown.w;
    planes[light_plane * P + p] = dot(colour, vec3(0.299, 0.587, 0.114));
    planes[depth_plane * P + p] = maps.x;
    planes[exposure_plane * P + p] = maps.y;
    planes[angle_plane * P + p] = maps.z;
    planes[spread_plane * P + p] = maps.w;
    planes[residual_plane * P + p] = rest.y / max(shown.w, 1e-6);
}
