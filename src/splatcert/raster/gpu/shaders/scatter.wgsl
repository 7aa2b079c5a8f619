// SPDX-License-Identifier: Apache-2.0
// uses walk
// constants: last_lane, occluded
// A transposed, tile by tile: for each entry the sum over the tile's pixels of weight times
// image. Pixels put eight weights each into shared memory; then lanes add pixels in order.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> listed: array<u32>;
@group(0) @binding(3) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> order: array<u32>;
@group(0) @binding(5) var<storage, read> image: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> parts: array<vec4<f32>>;
var<workgroup> weights: array<vec4<f32>, 512>;
var<workgroup> pulls: array<vec4<f32>, 256>;
var<workgroup> ended: atomic<u32>;
var<workgroup> all_ended: u32;

// What the fourth channel is multiplied by: the weight, its square, or one where it is positive.
fn lanes_of(weight: f32) -> vec4<f32> {
    var last = weight;
    if (last_lane == 1u) { last = weight * weight; }
    if (last_lane == 2u) { last = select(0.0, 1.0, weight > 0.0); }
    return vec4(weight, weight, weight, last);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    pulls[lane] = vec4(0.0);
    let t = number(group, groups);
    if (t + 1u >= arrayLength(&starts)) { return; }
    let here = place_of(t, lane, camera.size);
    var transmittance = select(0.0, 1.0, here.shown);
    if (here.shown) { pulls[lane] = image[here.at.y * camera.size.x + here.at.x]; }
    if (lane == 0u) { atomicStore(&ended, 0u); }
    workgroupBarrier();
    if (!here.shown) { atomicAdd(&ended, 1u); }
    let end = starts[t + 1u];
    for (var batch = starts[t]; batch < end; batch += 8u) {
        workgroupBarrier();
        if (lane == 0u) { all_ended = atomicLoad(&ended); }
        if (workgroupUniformLoad(&all_ended) == 256u) { break; }
        var mine = array<vec4<f32>, 2>();  // without the value, it is zero in the first round only
        for (var k = 0u; k < min(8u, end - batch); k++) {
            if (transmittance == 0.0) { break; }
            let m = listed[batch + k];
            let alpha = alpha_at(here.pixel, from_corner(records[2u * m], here.tile), records[2u * m + 1u]);
            if (!occluded) {
                mine[k / 4u][k % 4u] = alpha;
                continue;
            }
            let after = transmittance * (1.0 - alpha);
            if (after <= stop_transmittance) {
                transmittance = 0.0;
                atomicAdd(&ended, 1u);
                break;
            }
            mine[k / 4u][k % 4u] = alpha * transmittance;
            transmittance = after;
        }
        weights[2u * lane] = mine[0];
        weights[2u * lane + 1u] = mine[1];
        workgroupBarrier();
        let entry = lane % 8u;
        let first = lane / 8u * 8u;
        var sum = vec4(0.0);
        for (var p = first; p < first + 8u; p++) {
            sum += lanes_of(weights[2u * p + entry / 4u][entry % 4u]) * pulls[p];
        }
        workgroupBarrier();
        weights[lane] = sum;
        workgroupBarrier();
        if (lane < 8u && batch + lane < end) {
            var total = vec4(0.0);
            for (var k = lane; k < 256u; k += 8u) { total += weights[k]; }
            parts[order[batch + lane]] = total;
        }
    }
}
