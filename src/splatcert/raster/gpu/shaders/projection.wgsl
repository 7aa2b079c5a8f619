// SPDX-License-Identifier: Apache-2.0
// uses common, doubled
// EWA projection of one Gaussian. Its place is computed in pairs: in single precision, a centre
// would be off by up to 1e-4 pixels.
struct Footprint {
    drawn: bool,
    depth: vec2<f32>,
    place: vec4<f32>,  // whole pixels x, y, and the rest
    shape: vec4<f32>,  // a, b, c of 2 sigma = (a dx + b dy)^2 + (c dy)^2, and opacity
}

fn project(camera: Camera, mean: vec3<f32>, raw_opacity: f32, q: vec4<f32>,
           scales: vec3<f32>) -> Footprint {
    zero = camera.zero;
    var none: Footprint;
    none.drawn = false;
    var offset: array<vec2<f32>, 3>;
    for (var k = 0u; k < 3u; k++) {
        let d = exact_sum(mean[k], -camera.centre[k]);
        offset[k] = fast_sum(d.x, d.y - camera.centre_low[k]);
    }
    var at: array<vec2<f32>, 3>;
    for (var k = 0u; k < 3u; k++) {
        let row = camera.rotation[k];
        let low = camera.rotation_low[k];
        at[k] = plus(plus(times(vec2(row.x, low.x), offset[0]),
                          times(vec2(row.y, low.y), offset[1])),
                     times(vec2(row.z, low.z), offset[2]));
    }
    let z = at[2];
    if (!(z.x > near_plane && raw_opacity >= alpha_floor)) { return none; }
    let u = over(at[0], z);
    let v = over(at[1], z);
    let x = plus(times(vec2(camera.focal.x, camera.focal_low.x), u),
                 vec2(camera.principal.x, camera.principal_low.x));
    let y = plus(times(vec2(camera.focal.y, camera.focal_low.y), v),
                 vec2(camera.principal.y, camera.principal_low.y));

    let slope = vec2(clamp(u.x, camera.slopes.x, camera.slopes.y),
                     clamp(v.x, camera.slopes.z, camera.slopes.w));
    let forward = camera.rotation[2].xyz;
    let m0 = camera.focal.x / z.x * (camera.rotation[0].xyz - slope.x * forward);
    let m1 = camera.focal.y / z.x * (camera.rotation[1].xyz - slope.y * forward);
    let w = q.x;
    let turn = mat3x3<f32>(  // columns: the Gaussian's axes
        vec3(1.0 - 2.0 * (q.z * q.z + q.w * q.w), 2.0 * (q.y * q.z + w * q.w), 2.0 * (q.y * q.w - w * q.z)),
        vec3(2.0 * (q.y * q.z - w * q.w), 1.0 - 2.0 * (q.y * q.y + q.w * q.w), 2.0 * (q.z * q.w + w * q.y)),
        vec3(2.0 * (q.y * q.w + w * q.z), 2.0 * (q.z * q.w - w * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z)));
    let g0 = scales * (m0 * turn);
    let g1 = scales * (m1 * turn);
    // The determinant as a sum of squared minors (Lagrange): no difference of large numbers.
    let minors = cross(g0, g1);
    let sharp = dot(minors, minors);
    let xx = dot(g0, g0);
    let yy = dot(g1, g1) + low_pass;
    let xy = dot(g0, g1);
    let det = sharp + low_pass * (xx + yy);
    var opacity = raw_opacity;
    if (camera.antialiased != 0u) { opacity *= sqrt(max(compensation_floor, sharp / det)); }

    let a = sqrt(yy / det);
    let b = -xy / sqrt(yy) / sqrt(det);
    let c = 1.0 / sqrt(yy);
    if (!(opacity >= alpha_floor && finite(x.x) && finite(y.x) && finite(det) && finite(b) &&
          a > 0.0 && c > 0.0 && det > 0.0)) { return none; }
    let level = 2.0 * log(255.0 * opacity) + 1e-4;
    let reach = sqrt(level * vec2(xx + low_pass, yy)) + 1e-3;
    // The picture's pixels, then this band's: whole rows apart, so bands change no bit.
    let full = floor(vec2(x.x, y.x));
    let rest = (vec2(x.x, y.x) - full) + vec2(x.y, y.y);
    let whole = full - vec2(0.0, f32(camera.first_row));
    let centre = whole + rest;
    let first = max(ceil(centre - reach - 0.5), vec2(0.0));
    let last = min(floor(centre + reach - 0.5), vec2<f32>(camera.size) - 1.0);
    if (!all(first <= last)) { return none; }
    return Footprint(true, z, vec4(whole, rest), vec4(a, b, c, opacity));
}
