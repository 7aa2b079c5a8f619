// SPDX-License-Identifier: Apache-2.0
// What a certified query asks of the kernels beside the picture itself.
#pragma once

namespace splat {

struct View;

// Channels of a packed query, in the order in which they are composited.
enum QueryChannel {
    channel_rgb = 0,
    channel_one = 3,
    channel_depth,
    channel_exposure,
    channel_angle,
    channel_spread,
    channel_field,
    channel_residual,
    query_channels
};

// What a query knows of each Gaussian before it has a camera. A row of `traits` holds log
// exposure, spread, residual summary, the unit direction from which it was seen (zero where
// it was not), and the coefficients of the residual field.
struct QueryTraits {
    const float *means, *sh, *traits;
    int bases, field_bases;  // harmonics of colour and of the field
};
constexpr int fixed_traits = 6;

constexpr int query_statistics = 19;

struct QuerySummary {
    const float* image;  // [H, W, query_channels]
    int height, width;
    float background[3];
    float field_floor;
    float* center;  // [H, W, 3], on the background, clamped to [0, 1]
    float* field;   // [H, W], not below the floor
    // Means, 10th and 50th percentiles in the order of the descriptor: alpha, gradient; depth
    // as mean and deviation; log exposure, angle, spread; means of field and residual summary.
    double statistics[query_statistics];
};

struct QueryKernels {
    // Rows of drawn Gaussians, [N, query_channels]; the others are left as they are, and no
    // composite reads them.
    void (*pack)(const View&, const QueryTraits&, float* values);
    void (*summarise)(QuerySummary&);
};

}  // namespace splat
