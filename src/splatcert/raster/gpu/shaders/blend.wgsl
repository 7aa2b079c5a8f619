// SPDX-License-Identifier: Apache-2.0
// uses walk
// constants: vectors
// A: values of the Gaussians to pixels, front to back; one workgroup per tile.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> listed: array<u32>;
@group(0) @binding(3) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> image: array<vec4<f32>>;
var<workgroup> centres: array<vec2<f32>, 256>;
var<workgroup> shapes: array<vec4<f32>, 256>;
var<workgroup> owners: array<u32, 256>;
var<workgroup> ended: atomic<u32>;
var<workgroup> all_ended: u32;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let t = number(group, groups);
    if (t + 1u >= arrayLength(&starts)) { return; }
    let here = place_of(t, lane, camera.size);
    var transmittance = select(0.0, 1.0, here.shown);
    if (lane == 0u) { atomicStore(&ended, 0u); }
    workgroupBarrier();
    if (!here.shown) { atomicAdd(&ended, 1u); }
    var sums: array<vec4<f32>, vectors>;
    let end = starts[t + 1u];
    for (var batch = starts[t]; batch < end; batch += 256u) {
        workgroupBarrier();
        if (lane == 0u) { all_ended = atomicLoad(&ended); }
        if (workgroupUniformLoad(&all_ended) == 256u) { break; }
        if (batch + lane < end) {
            let m = listed[batch + lane];
            centres[lane] = from_corner(records[2u * m], here.tile);
            shapes[lane] = records[2u * m + 1u];
            owners[lane] = m;
        }
        workgroupBarrier();
        var k = select(0u, 256u, transmittance == 0.0);
        for (; k < min(256u, end - batch); k++) {
            let alpha = alpha_at(here.pixel, centres[k], shapes[k]);
            if (alpha == 0.0) { continue; }
            let after = transmittance * (1.0 - alpha);
            if (after <= stop_transmittance) {
                transmittance = 0.0;
                atomicAdd(&ended, 1u);
                break;
            }
            let weight = alpha * transmittance;
            for (var v = 0u; v < vectors; v++) {
                sums[v] += weight * values[owners[k] * vectors + v];
            }
            transmittance = after;
        }
    }
    if (here.shown) {
        for (var v = 0u; v < vectors; v++) {
            image[(here.at.y * camera.size.x + here.at.x) * vectors + v] = sums[v];
        }
    }
}
