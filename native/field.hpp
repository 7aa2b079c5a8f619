// SPDX-License-Identifier: Apache-2.0
// What the residual field asks of a view: sums over its pixels, in the harmonics of the
// direction from each Gaussian to the camera.
#pragma once

#include <cstdint>

namespace splat {

struct View;

// One training view: rendered, compared with its photo, and scattered back. Every result is
// added to what is there, for drawn Gaussians only. K harmonics; w are weights, alpha their sum
// over a pixel, e the largest absolute error of a pixel's clamped colours. A pixel counts where
// `mask` is null or not zero.
struct SurveyRequest {
    const float* means;    // [N, 3]
    const float* colours;  // [N, 3]
    const float* photo;    // [H, W, 3]
    float background[3];
    const uint8_t* mask;  // [H, W] or null
    int bases;            // K: 1, 4, 9 or 16
    int bins;
    float* support;      // [N, 5]: sums of w and w d (three) over all pixels, of w e over counted
    double* moments;     // [N, 2, K]: sums of w e phi and w alpha phi over counted pixels
    float* blocks;       // [N, K (K + 1) / 2]: of w alpha phi phi^T, its lower half by rows
    double* squares;     // [N]: of w^2 over counted pixels
    double* energy;      // [4]: of squared colour errors, e^2, e alpha, alpha^2 over counted pixels
    int64_t* histogram;  // [bins]: of e on [0, 1] over counted pixels
};

// result += A^T M A C with the field's coefficients C, both [N, K], M the mask.
struct FieldNormalRequest {
    const float* means;
    const float* coefficients;
    const uint8_t* mask;
    int bases;
    double* result;
};

struct FieldKernels {
    void (*survey)(const View&, const SurveyRequest&);
    void (*normal)(const View&, const FieldNormalRequest&);
    // values = c . phi(d), [N]; zero where a Gaussian is not drawn.
    void (*values)(const View&, const float* means, const float* coefficients, int bases,
                   float* values);
};

}  // namespace splat
