// SPDX-License-Identifier: Apache-2.0
// Sums over the witnesses of a pixel, one after the other, each for all pixels that are asked about.
const told_sums = 18u;
const told_count = 0u;
const told_weight = 1u;
const told_nearest = 2u;  // smallest distance
const told_clash = 3u;  // photograph minus query, three channels, weighted
const told_residual = 6u;
const told_clash_squares = 9u;
const told_residual_squares = 12u;
const told_clash_size = 15u;  // largest channel, weighted
const told_residual_size = 16u;
const told_least_clash = 17u;

fn largest(v: vec3<f32>) -> f32 {
    return max(abs(v.x), max(abs(v.y), abs(v.z)));
}
