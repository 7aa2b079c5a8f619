// SPDX-License-Identifier: Apache-2.0
// uses common
// One footprint at one pixel, both relative to the corner of a tile.
fn alpha_at(pixel: vec2<f32>, centre: vec2<f32>, shape: vec4<f32>) -> f32 {
    let d = pixel - centre;
    let along = shape.x * d.x + shape.y * d.y;
    let across = shape.z * d.y;
    let alpha = min(alpha_cap, shape.w * exp(-0.5 * (along * along + across * across)));
    return select(alpha, 0.0, alpha < alpha_floor);
}

fn from_corner(place: vec4<f32>, tile: vec2<u32>) -> vec2<f32> {
    return (place.xy - vec2<f32>(tile * tile_size)) + place.zw;
}

// Where a lane of tile t stands.
struct Place {
    tile: vec2<u32>,
    at: vec2<u32>,
    pixel: vec2<f32>,  // from the tile's corner
    shown: bool,
}

fn place_of(t: u32, lane: u32, size: vec2<u32>) -> Place {
    let columns = (size.x + tile_size - 1u) / tile_size;
    let tile = vec2(t % columns, t / columns);
    let inside = vec2(lane % tile_size, lane / tile_size);
    let at = tile * tile_size + inside;
    return Place(tile, at, vec2<f32>(inside) + 0.5, all(at < size));
}
