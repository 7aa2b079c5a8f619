// SPDX-License-Identifier: Apache-2.0
// Plain structures shared by all kernels: a camera, raw splats, and a prepared view.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "field.hpp"
#include "pool.hpp"
#include "query.hpp"
#include "witnesses.hpp"

namespace splat {

// Constants of the renderer (docs/conventions.md is their one description).
constexpr double near_plane = 0.01;
constexpr double low_pass = 0.3;
constexpr double alpha_cap = 0.99;
constexpr double alpha_floor = 1.0 / 255.0;
constexpr double stop_transmittance = 1e-4;
constexpr double fov_margin = 0.3;
constexpr double compensation_floor = 2.5e-5;  // of the squared opacity compensation

constexpr double log2_e = 1.4426950408889634;
constexpr double ln_2 = 0.6931471805599453;
constexpr float log2_alpha_floor = -7.994353436858858f;  // log2(1/255)

constexpr int tile_size = 16;
constexpr int half_width = 8;  // culling works on rows of eight pixels
constexpr int tile_pixels = tile_size * tile_size;

struct CameraModel {
    double rotation[9], shift[3];  // world to camera
    double fx, fy, cx, cy;
    int width, height;
    bool antialiased;
};

struct RawSplats {
    const float *means, *quats, *log_scales, *logit_opacities;
    int64_t count;
};

// One drawn Gaussian in the image. The exponent of its alpha is the quadratic
//   log2(alpha) = log2_opacity + a dx^2 + b dx dy + c dy^2,   d = pixel - mean.
// It is kept in double precision: expanding it about a tile's centre cancels large terms
// for long thin Gaussians, and that is done before anything is rounded to float.
struct Footprint {
    double mean_x, mean_y;
    double a, b, c;
    float log2_opacity, depth;
    uint32_t gaussian;
    uint16_t tile_x0, tile_y0, tile_x1, tile_y1;  // inclusive
    uint32_t rank;  // position of its Gaussian among the drawn ones, in ascending order
};
static_assert(sizeof(Footprint) == 64, "one cache line");

// One Gaussian in one tile. Bit half * 16 + row of `rows` says that the eight pixels of
// that half row may have alpha >= 1/255.
struct Entry {
    uint32_t footprint, rows, emission;
};

// A view that would have more entries than its limit; the message is what its boxes of tiles hold,
// an upper bound.
struct TooManyEntries : std::length_error {
    using std::length_error::length_error;
};

struct View {
    CameraModel camera;
    uint64_t entry_limit = 0xfffffffe;  // entries are numbered in 32 bits
    int64_t count = 0;                  // Gaussians in the splats
    int tiles_x = 0, tiles_y = 0;
    Array<Footprint> footprints;     // drawn ones, front to back
    Array<uint32_t> drawn;           // their Gaussians in ascending order
    Array<uint32_t> tile_start;      // [tiles + 1] into entries
    Array<Entry> entries;            // by tile, front to back within one
    Array<uint32_t> emission_start;  // [drawn + 1]: a Gaussian's entries, numbered together
};

struct ViewGradients {
    const float* values;      // [N, channels] that were composited
    const float* image;       // [H, W, channels] that came out
    const float* grad_image;  // [H, W, channels]
    int channels;
    float* grad_values;  // [N, channels]
    float *grad_means, *grad_quats, *grad_log_scales, *grad_logit_opacities;
    float* grad_means2d;      // [N, 2], pixels
    float* abs_grad_means2d;  // [N, 2] or null: sum over pixels of absolute values
};

struct LossRequest {
    const float *image, *target;
    const uint8_t* mask;  // [H, W] or null
    int height, width, channels;
    double weight_l1, weight_ssim;  // loss = weight_l1 * L1 + weight_ssim * (1 - SSIM)
    bool valid_only;                // SSIM over pixels whose window lies inside the image
    float* grad;                    // [H, W, C] or null
    double l1, ssim;                // out
};

struct AdamRequest {
    float *parameter, *first, *second, *grad;
    const uint8_t* rows;  // [rows] or null: rows to step
    bool clear;           // set gradients to zero once they are used
    int64_t row_count;
    int columns;                    // of a row
    int first_column, last_column;  // those to step, the last one not included
    double rate, beta1, beta2, epsilon, correction1, correction2;
};

// What an instruction set provides. `name` is what users read.
struct Kernels {
    const char* name;
    int width;
    void (*prepare)(View&, const RawSplats&);
    void (*composite)(const View&, const float* values, int channels, float* image);
    void (*scatter)(const View&, const float* image, int channels, float* values);
    void (*normal)(const View&, const float* values, int channels, float* result);
    void (*count)(const View&, const uint8_t* mask, float* counts);
    void (*footprint)(const View&, float* sums);
    int64_t (*contributors)(const View&, int row, int column, uint32_t* gaussians, float* weights,
                            int64_t room);
    void (*backward)(const View&, const RawSplats&, const ViewGradients&);
    void (*shade)(const View&, const float* means, const float* sh, int bases, int active,
                  float* colours);
    void (*shade_backward)(const View&, const float* means, const float* sh, int bases, int active,
                           const float* grad_colours, bool accumulate, float* grad_means,
                           float* grad_sh);
    void (*loss)(LossRequest&);
    void (*adam)(const AdamRequest&);
    const FieldKernels* field;
    const QueryKernels* query;
    void (*ask_witnesses)(const WitnessRequest&);
};

const Kernels* kernels_avx512();
const Kernels* kernels_avx2();
const Kernels* kernels_portable();
const Kernels* kernels_portable16();
const Kernels* kernels_scalar();

}  // namespace splat
