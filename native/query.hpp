// SPDX-License-Identifier: Apache-2.0
// What a certified query asks of the kernels beside preparing the view.
#pragma once

#include <cstddef>

namespace splat {

struct View;

// Channels of a query, in the order in which they are packed.
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

constexpr int query_row = 16;  // floats from one packed row to the next: a cache line

// Maps that are kept as images, because percentiles are taken of them. Of the light it is
// those of its slope.
enum QueryMap { map_alpha, map_light, map_exposure, map_angle, map_spread, query_maps };

// A row of `traits` is what a query knows of a Gaussian before it has a camera: log exposure,
// spread, residual summary, the unit direction from which it was seen (zero where it was not),
// and the coefficients of the residual field.
constexpr int fixed_traits = 6;

struct QueryGaussians {
    const float *means, *sh, *traits;
    int bases, field_bases;  // harmonics of colour and of the field
};

struct QueryRequest {
    QueryGaussians gaussians;
    float background[3];
    float field_floor;
    float* center;  // [H, W, 3], on the background, clamped to [0, 1]
    float* field;   // [H, W], not below the floor
    float* maps;    // [query_maps, H, W]
    float* depth;   // [H, W], camera z
    // Over all pixels: mean and deviation of depth, means of field and residual summary.
    double moments[4];
};

struct MapsRequest {
    const float* maps;  // [query_maps, H, W]
    int height, width;
    double statistics[3 * query_maps];  // mean, 10th and 50th percentile of each
};

// A picture alone.
struct PictureRequest {
    const float *means, *sh;
    int bases;
    float background[3];
    float* rgb;    // [H, W, 3], on the background
    float* alpha;  // [H, W]
    float* depth;  // [H, W], camera z; 0 where nothing was hit
};

struct QueryKernels {
    // The values that `render` composites, [N, query_channels]; zero where not drawn.
    void (*pack)(const View&, const QueryGaussians&, float* values);
    void (*render)(const View&, QueryRequest&);
    void (*summarise)(MapsRequest&);
    float (*median)(const float* values, std::size_t count);
    void (*picture)(const View&, const PictureRequest&);
};

}  // namespace splat
