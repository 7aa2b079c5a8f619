// SPDX-License-Identifier: Apache-2.0
// uses planes
// constants: shift
// For each of ten order statistics, how often each next digit follows those already known.
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> planes: array<f32>;
@group(0) @binding(2) var<storage, read> known: array<vec2<u32>>;  // digits, and rank among them
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;
var<workgroup> tally: array<atomic<u32>, 512>;

fn matches(key: u32, digits: u32) -> bool {
    if (shift == 24u) { return true; }
    return (key >> (shift + 8u) % 32u) == (digits >> (shift + 8u) % 32u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let at = number(group, groups);
    let blocks = (picture.pixels + 4095u) / 4096u;
    if (at >= 5u * blocks) { return; }
    let map = at / blocks;
    atomicStore(&tally[lane], 0u);
    atomicStore(&tally[256u + lane], 0u);
    workgroupBarrier();
    let first = (at % blocks) * 4096u;
    let plane = described(map) * picture.pixels;
    for (var p = first + lane; p < min(first + 4096u, picture.pixels); p += 256u) {
        let bits = bitcast<u32>(planes[plane + p]);
        let key = bits ^ select(0x80000000u, 0xffffffffu, (bits & 0x80000000u) != 0u);
        for (var r = 0u; r < 2u; r++) {
            if (matches(key, known[2u * map + r].x)) {
                atomicAdd(&tally[256u * r + ((key >> shift) & 255u)], 1u);
            }
        }
    }
    workgroupBarrier();
    for (var r = 0u; r < 2u; r++) {
        let found = atomicLoad(&tally[256u * r + lane]);
        if (found > 0u) { atomicAdd(&counts[(2u * map + r) * 256u + lane], found); }
    }
}
