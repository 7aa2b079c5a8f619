// SPDX-License-Identifier: Apache-2.0
// What the residual field asks of a view: sums over its pixels, in the harmonics of the
// direction from each Gaussian to the camera.
#pragma once

#include <cstdint>

namespace splat {

struct View;

// One view's share of everything first-order; each result is added to what is there, for
// drawn Gaussians only. K harmonics; a pixel counts where `mask` is not zero or null.
struct SurveyRequest {
    const float* means;     // [N, 3]
    const float* residual;  // [H, W]
    const float* alpha;     // [H, W], accumulated opacity
    const uint8_t* mask;    // [H, W] or null
    int bases;              // K: 1, 4, 9 or 16
    float* support;         // [N, 5]: sum of w, of w d (three), of w e over counted pixels
    double* moments;        // [N, 2, K]: sums of w e phi and of w alpha phi over counted pixels
    float* blocks;          // [N, K (K + 1) / 2]: sum of w alpha phi phi^T, its lower half by rows
    double* squares;        // [N]: sum of w^2 over counted pixels
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
