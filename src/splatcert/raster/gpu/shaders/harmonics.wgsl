// SPDX-License-Identifier: Apache-2.0
// uses common
// The directional basis of docs/conventions.md, by the recurrence of splats/harmonics.py.
const norms = array<f32, 15>(  // of (l, m), l = 0 ... 4, m = 0 ... l, with the phase (-1)^m
    0.28209479177387814,
    0.4886025119029199, -0.48860251190292,
    0.6307831305050401, -0.36418281019735976, 0.18209140509867988,
    0.7463526651802308, -0.3046971996429772, 0.09635371475468515, -0.03933623932844291,
    0.8462843753216345, -0.2676186174229157, 0.063078313050504,
    -0.016858388283618388, 0.005960340337611203);

fn harmonics(d: vec3<f32>, degree: u32) -> array<f32, 25> {
    var phi: array<f32, 25>;
    var table = norms;
    var cosine = 1.0;
    var sine = 0.0;
    var leading = 1.0;
    for (var m = 0u; m <= degree; m++) {
        var below = 0.0;
        var current = leading;
        for (var l = m; l <= degree; l++) {
            let height = table[l * (l + 1u) / 2u + m] * current;
            phi[l * l + l + m] = height * cosine;
            if (m > 0u) { phi[l * l + l - m] = height * sine; }
            let rise = f32(2u * l + 1u) * d.z * current - f32(l + m) * below;
            below = current;
            current = rise / f32(l + 1u - m);
        }
        let turned = d.x * cosine - d.y * sine;
        sine = d.x * sine + d.y * cosine;
        cosine = turned;
        leading *= f32(2u * m + 1u);
    }
    return phi;
}

// From the camera to a Gaussian, not normalised.
fn away(camera: Camera, mean: vec3<f32>) -> vec3<f32> {
    return (mean - camera.centre.xyz) - camera.centre_low.xyz;
}
