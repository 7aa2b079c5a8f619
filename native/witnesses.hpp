// SPDX-License-Identifier: Apache-2.0
// What training photographs say about the pixels of a new view.
#pragma once

#include <cstdint>

namespace splat {

// A training view that is asked. A pixel is six bytes: three of colour, one of depth, and two of
// the render's signed residual in 5, 6 and 5 bits. Each row ends with ten more, so that sixteen
// can be read from its last pixel.
constexpr int witness_bytes = 6, witness_padding = 10;

// A residual is k (slope + bend k^2) in units of colour, finer where it is small, and 1/2 where k
// is the largest: 15 with 5 bits, 31 with 6. The bits hold k + the largest + 1.
struct WitnessResidual {
    float middle, slope, bend;
};
constexpr WitnessResidual witness_residual_5 = {16, 1 / 254.0f, (0.5f / 15 - 1 / 254.0f) / 225};
constexpr WitnessResidual witness_residual_6 = {32, 0.5f / 254, (0.5f / 31 - 0.5f / 254) / 961};

struct Witness {
    const uint8_t* pixels;  // [height, stride]
    int height, width, stride;
    float log2_near, log2_step;   // of depth; zero is where nothing was seen, one is the nearest
    float rotation[9], shift[3];  // from the query's camera to this one
    float centre[3];              // of this camera, in the query's
    float fx, fy, cx, cy;
};

constexpr int witness_numbers = 21;  // the floats of one witness, in this order

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

// Makes the scale of every pixel from these maps and the residual field.
constexpr int guide_weights = 11, guide_numbers = guide_weights + 5, most_units = 32;

// A unit of the guide's network adds share tanh(weights . features + bias) to the exponent.
struct GuideUnit {
    float weights[guide_weights], bias, share;
};
constexpr int unit_numbers = guide_weights + 2;

struct GuideRequest {
    const float* field;            // [H, W]
    float weights[guide_weights];  // in the order of the guide's features
    float intercept, floor;
    float gate[3];   // how far to trust the mean residual: by count, by log distance, always
    float* scale;    // [H, W]
    double* sums;    // [H], of the rows of the scale
    uint32_t* told;  // [H], pixels of each row that have a witness
    int unit_count;
    GuideUnit units[most_units];
};

struct WitnessRequest {
    const float* depth;    // [H, W], camera z; not positive where nothing is seen
    const float* picture;  // [H, W, 3]
    int height, width;
    float fx, fy, cx, cy;
    const Witness* witnesses;
    int count;
    float* maps;        // [witness_maps, H, W] or null; zero where no witness sees the point
    float* correction;  // [3, H, W] or null: the mean residual as far as the guide trusts it
    const GuideRequest* guide;  // null without a scale
};

}  // namespace splat
