// SPDX-License-Identifier: Apache-2.0
// uses planes, told
// One training photograph is asked about the pixels of a query (witnesses/maps.py): each is taken
// to where its surface lies in the photograph and compared there.
const hidden = 0.08;
const closest = 1e-4;
const softening = 0.05;
const coarseness = 0.2;
// Residuals as witnesses/pack.py codes them: k (slope + bend k^2), up to 1/2.
const largest_code = vec3(15.0, 31.0, 15.0);
const slope = 16.0 / (largest_code + 1.0) / 254.0;
const bend = (0.5 / largest_code - slope) / (largest_code * largest_code);

struct Asked {
    rows: array<vec4<f32>, 3>,  // from the query's camera to the witness's: rotation and shift
    centre: vec4<f32>,  // of the witness, in the query's camera; log2 of the depth of code 1
    lens: vec4<f32>,  // fx, fy, cx, cy of the witness
    query_lens: vec4<f32>,
    size: vec2<u32>,  // width and height of the photograph
    first: u32,  // of the pixels that are asked about
    step: f32,  // in log2 of the depth, from code to code
}
@group(0) @binding(0) var<storage, read> picture: Picture;
@group(0) @binding(1) var<storage, read> planes: array<f32>;
@group(0) @binding(2) var<storage, read> asked: Asked;
@group(0) @binding(3) var<storage, read> photo: array<vec2<u32>>;  // as witnesses/pack.py packs it
@group(0) @binding(4) var<storage, read_write> told: array<f32>;

struct Sample {
    colour: vec3<f32>,
    residual: vec3<f32>,
}

fn pixel(x: i32, y: i32, share: f32) -> Sample {
    let at = clamp(vec2(x, y), vec2(0), vec2<i32>(asked.size) - 1);
    let bytes = photo[u32(at.y) * asked.size.x + u32(at.x)];
    let colour = vec3(bytes.x & 255u, bytes.x >> 8u & 255u, bytes.x >> 16u & 255u);
    let codes = vec3(bytes.y & 31u, bytes.y >> 5u & 63u, bytes.y >> 11u & 31u);
    let k = vec3<f32>(codes) - 1.0 - largest_code;
    return Sample(share * vec3<f32>(colour), share * k * (slope + bend * k * k));
}

// Between four pixels, edges repeated.
fn sampled(place: vec2<f32>) -> Sample {
    let corner = floor(place - 0.5);
    let f = place - 0.5 - corner;
    let x = i32(corner.x);
    let y = i32(corner.y);
    let a = pixel(x, y, (1.0 - f.x) * (1.0 - f.y));
    let b = pixel(x + 1, y, f.x * (1.0 - f.y));
    let c = pixel(x, y + 1, (1.0 - f.x) * f.y);
    let d = pixel(x + 1, y + 1, f.x * f.y);
    return Sample((a.colour + b.colour + c.colour + d.colour) / 255.0,
                  a.residual + b.residual + c.residual + d.residual);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = number(group, groups) * 256u + lane;
    let count = arrayLength(&told) / told_sums;
    if (i >= count) { return; }
    let p = asked.first + i;
    let depth = planes[depth_plane * picture.pixels + p];
    if (!(depth > closest)) { return; }
    let column = f32(p % picture.width) + 0.5;
    let row = f32(p / picture.width) + 0.5;
    let slope = (vec2(column, row) - asked.query_lens.zw) / asked.query_lens.xy;
    let at = vec4(slope * depth, depth, 1.0);
    let z = dot(asked.rows[2], at);
    if (!(z > closest)) { return; }
    let place = vec2(dot(asked.rows[0], at), dot(asked.rows[1], at)) / z * asked.lens.xy +
                asked.lens.zw;
    if (!(all(place >= vec2(0.0)) && all(place < vec2<f32>(asked.size)))) { return; }
    let cell = min(vec2<u32>(place), asked.size - 1u);
    let code = photo[cell.y * asked.size.x + cell.x].x >> 24u;
    let surface = exp2(asked.centre.w + (f32(code) - 1.0) * asked.step);
    if (code == 0u || !(surface > (1.0 - hidden) * z)) { return; }

    // The chord between both directions; by its cosine, small ones would lose half their digits.
    let chord = length(normalize(at.xyz) - normalize(at.xyz - asked.centre.xyz));
    let distance = chord + coarseness * max(1.0 - depth / z, 0.0);
    let near = 1.0 / (distance + softening);
    let weight = near * near;
    let found = sampled(place);
    let clash = found.colour - vec3(planes[3u * p], planes[3u * p + 1u], planes[3u * p + 2u]);
    let size = largest(clash);
    let before = told[told_count * count + i];
    told[told_count * count + i] = before + 1.0;
    told[told_weight * count + i] += weight;
    let nearest = told[told_nearest * count + i];
    told[told_nearest * count + i] = select(min(nearest, distance), distance, before == 0.0);
    for (var c = 0u; c < 3u; c++) {
        told[(told_clash + c) * count + i] += weight * clash[c];
        told[(told_residual + c) * count + i] += weight * found.residual[c];
        told[(told_clash_squares + c) * count + i] += weight * clash[c] * clash[c];
        told[(told_residual_squares + c) * count + i] +=
            weight * found.residual[c] * found.residual[c];
    }
    told[told_clash_size * count + i] += weight * size;
    told[told_residual_size * count + i] += weight * largest(found.residual);
    let least = told[told_least_clash * count + i];
    told[told_least_clash * count + i] = select(min(least, size), size, before == 0.0);
}
