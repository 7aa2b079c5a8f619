// SPDX-License-Identifier: Apache-2.0
// uses tiles
// One entry for each tile that a Gaussian reaches: the tile, and the Gaussian among the drawn.
@group(0) @binding(0) var<storage, read> camera: Camera;
@group(0) @binding(1) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read_write> tiles: array<u32>;
@group(0) @binding(5) var<storage, read_write> owners: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let j = number(group, groups) * 256u + lane;
    if (j >= arrayLength(&order)) { return; }
    let m = order[j];
    let place = records[2u * m];
    let shape = records[2u * m + 1u];
    let box = box_of(camera, place, shape);
    let columns = columns_of(camera);
    var e = offsets[j];
    let end = offsets[j + 1u];
    for (var y = box.first.y; y <= box.last.y; y++) {
        for (var x = box.first.x; x <= box.last.x; x++) {
            if (e < end && reaches(vec2(x, y), place, shape)) {
                tiles[e] = u32(y) * columns + u32(x);
                owners[e] = m;
                e++;
            }
        }
    }
    // Should this kernel round differently from the count, the rest belongs to no tile.
    for (; e < end; e++) {
        tiles[e] = columns * ((camera.size.y + tile_size - 1u) / tile_size);
        owners[e] = m;
    }
}
