// SPDX-License-Identifier: Apache-2.0
// uses planes, told
// The maps of a query from what its witnesses told, in the order of WitnessMaps; zero without any.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> told: array<f32>;
@group(0) @binding(3) var<storage, read_write> maps: array<f32>;

fn three(sum: u32, count: u32, i: u32) -> vec3<f32> {
    return vec3(told[sum * count + i], told[(sum + 1u) * count + i], told[(sum + 2u) * count + i]);
}

fn deviation(squares: vec3<f32>, mean: vec3<f32>) -> f32 {
    return largest(sqrt(max(squares - mean * mean, vec3(0.0))));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    let count = arrayLength(&told) / told_sums;
    if (i >= count || told[told_count * count + i] == 0.0) { return; }
    let share = 1.0 / told[told_weight * count + i];
    let clash = share * three(told_clash, count, i);
    let residual = share * three(told_residual, count, i);
    let P = picture.pixels;
    let p = first[0] + i;
    maps[p] = told[told_count * count + i];
    maps[P + p] = told[told_nearest * count + i];
    maps[2u * P + p] = share * told[told_residual_size * count + i];
    maps[3u * P + p] = share * told[told_clash_size * count + i];
    maps[4u * P + p] = told[told_least_clash * count + i];
    maps[5u * P + p] = largest(clash);
    maps[6u * P + p] = deviation(share * three(told_clash_squares, count, i), clash);
    for (var c = 0u; c < 3u; c++) { maps[(7u + c) * P + p] = residual[c]; }
    maps[10u * P + p] = deviation(share * three(told_residual_squares, count, i), residual);
}
