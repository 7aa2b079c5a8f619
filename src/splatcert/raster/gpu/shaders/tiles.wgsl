// SPDX-License-Identifier: Apache-2.0
// uses common
// Which tiles a footprint reaches. Too many are harmless: every pixel is tested again.
struct Box { first: vec2<i32>, last: vec2<i32> }

fn level_of(opacity: f32) -> f32 {
    return 2.0 * log(255.0 * opacity) + 0.02;
}

fn box_of(camera: Camera, place: vec4<f32>, shape: vec4<f32>) -> Box {
    let yy = 1.0 / (shape.z * shape.z);
    let lean = shape.y / shape.x;
    let xx = 1.0 / (shape.x * shape.x) + lean * lean * yy;
    let reach = sqrt(level_of(shape.w) * vec2(xx, yy)) + 1e-3;
    let centre = place.xy + place.zw;
    let size = vec2<f32>(camera.size);
    let low = clamp(centre - reach, vec2(0.0), size - 1.0);
    let high = clamp(centre + reach, vec2(0.0), size - 1.0);
    return Box(vec2<i32>(low) / i32(tile_size), vec2<i32>(high) / i32(tile_size));
}

fn reaches(tile: vec2<i32>, place: vec4<f32>, shape: vec4<f32>) -> bool {
    let low = vec2<f32>(tile * i32(tile_size)) - place.xy - place.zw + 0.5;
    let high = low + f32(tile_size - 1u);
    let beyond = low > vec2(0.0);
    let before = high < vec2(0.0);
    if (!any(beyond | before)) { return true; }
    // The least exponent over the tile is on an edge that faces the centre.
    let edge = select(high, low, beyond);
    var least = 1e30;
    if (beyond.x || before.x) {
        let turn = -shape.x * shape.y / (shape.y * shape.y + shape.z * shape.z);
        let dy = clamp(turn * edge.x, low.y, high.y);
        let along = shape.x * edge.x + shape.y * dy;
        least = along * along + shape.z * shape.z * dy * dy;
    }
    if (beyond.y || before.y) {
        let dx = clamp(-shape.y / shape.x * edge.y, low.x, high.x);
        let along = shape.x * dx + shape.y * edge.y;
        least = min(least, along * along + shape.z * shape.z * edge.y * edge.y);
    }
    return least <= level_of(shape.w);
}

fn columns_of(camera: Camera) -> u32 {
    return (camera.size.x + tile_size - 1u) / tile_size;
}
