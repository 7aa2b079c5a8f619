// SPDX-License-Identifier: Apache-2.0
// What training photographs say about the pixels of a new view.
#pragma once

#include <cstdint>

namespace splat {

// A training view that is asked. A pixel is eight bytes: colour of the photograph, signed
// residual of the render about 128, and the upper half of the depth as a float.
constexpr int witness_bytes = 8;
constexpr float witness_residual_steps = 254.0f;  // per unit of colour

struct Witness {
    const uint8_t* pixels;  // [height, width, witness_bytes]
    int height, width;
    float rotation[9], shift[3];  // from the query's camera to this one
    float centre[3];              // of this camera, in the query's
    float fx, fy, cx, cy;
};

constexpr int witness_numbers = 19;  // the floats of one witness, in this order

enum WitnessMap {
    witness_count,     // photographs that see the point
    witness_distance,  // smallest distance between the two rays and scales
    witness_residual,  // mean error of the render there
    witness_clash,     // mean difference between photograph and query
    witness_least_clash,
    witness_bias,                         // size of the mean signed difference
    witness_spread,                       // deviation of that difference
    witness_drift,                        // mean signed residual, three planes
    witness_scatter = witness_drift + 3,  // deviation of the signed residual
    witness_maps
};

struct WitnessRequest {
    const float* depth;    // [H, W], camera z; not positive where nothing is seen
    const float* picture;  // [H, W, 3]
    int height, width;
    float fx, fy, cx, cy;
    const Witness* witnesses;
    int count;
    float* maps;  // [witness_maps, H, W]; zero where no witness sees the point
};

}  // namespace splat
