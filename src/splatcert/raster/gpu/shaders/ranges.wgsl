// SPDX-License-Identifier: Apache-2.0
// uses common
// Where the list of each tile begins in the sorted entries, and the Gaussians of all lists.
@group(0) @binding(0) var<storage, read> tiles: array<u32>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> owners: array<u32>;
@group(0) @binding(3) var<storage, read_write> starts: array<u32>;
@group(0) @binding(4) var<storage, read_write> listed: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let s = number(group, groups) * 256u + lane;
    let count = arrayLength(&order);
    if (s >= count) { return; }
    listed[s] = owners[order[s]];
    let tile = tiles[order[s]];
    var first = 0u;
    if (s > 0u) { first = tiles[order[s - 1u]] + 1u; }
    for (var t = first; t <= tile; t++) { starts[t] = s; }
    if (s == count - 1u) {
        for (var t = tile + 1u; t < arrayLength(&starts); t++) { starts[t] = count; }
    }
}
