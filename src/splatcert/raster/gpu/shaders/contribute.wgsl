// SPDX-License-Identifier: Apache-2.0
// uses walk
// constants: write
// Gaussians and weights behind chosen pixels. Each pixel has the room between its offsets; with
// no room at all, the kernel counts what it needs.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> listed: array<u32>;
@group(0) @binding(3) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> pixels: array<vec2<u32>>;  // row, column
@group(0) @binding(5) var<storage, read_write> offsets: array<u32>;
@group(0) @binding(6) var<storage, read_write> found: array<u32>;
@group(0) @binding(7) var<storage, read_write> weights: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    if (i >= arrayLength(&pixels)) { return; }
    let at = pixels[i].yx;
    let tile = at / tile_size;
    let pixel = vec2<f32>(at % tile_size) + 0.5;
    let t = tile.y * ((camera.size.x + tile_size - 1u) / tile_size) + tile.x;
    var transmittance = 1.0;
    var count = 0u;
    for (var s = starts[t]; s < starts[t + 1u]; s++) {
        let m = listed[s];
        let alpha = alpha_at(pixel, from_corner(records[2u * m], tile), records[2u * m + 1u]);
        if (alpha == 0.0) { continue; }
        let after = transmittance * (1.0 - alpha);
        if (after <= stop_transmittance) { break; }
        if (write) {
            found[offsets[i] + count] = m;
            weights[offsets[i] + count] = alpha * transmittance;
        }
        count++;
        transmittance = after;
    }
    if (!write) { offsets[i] = count; }
}
