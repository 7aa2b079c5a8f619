// SPDX-License-Identifier: Apache-2.0
// uses planes
// constants: squared
// Sums over blocks of 4,096 pixels: of each plane, or of the depth's squared deviations.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> planes: array<f32>;
@group(0) @binding(2) var<storage, read> results: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
var<workgroup> shared_sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let at = number(group, groups);
    if (at >= arrayLength(&sums)) { return; }
    let blocks = (picture.pixels + 4095u) / 4096u;
    let plane = select(described(at / blocks), depth_plane, squared);
    let first = (at % blocks) * 4096u + lane;
    var sum = 0.0;
    for (var p = first; p < min(first + 4096u - lane, picture.pixels); p += 256u) {
        let value = planes[plane * picture.pixels + p];
        let off = value - results[5];
        sum += select(value, off * off, squared);
    }
    shared_sums[lane] = sum;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if (lane < half) { shared_sums[lane] += shared_sums[lane + half]; }
        workgroupBarrier();
    }
    if (lane == 0u) { sums[at] = shared_sums[0]; }
}
