// SPDX-License-Identifier: Apache-2.0
// From a map of difficulty to the widths of boxes: elementwise, in one sweep.
#pragma once

#include <cstddef>

namespace splat {

// out = (values times + plus) + h prior, wide where the model shows nothing: h is 1 - opacity, or
// its square. Returns the mean.
struct WidenRequest {
    const float *values, *opacity;
    float times, plus, prior;
    bool squared;
    float* out;
    std::size_t count;
};
double widen(const WidenRequest&);

// out = ((values / unit) kept + rest) times: the shape of a map, or the boxes that follow.
struct ShrinkRequest {
    const float* values;
    float unit, kept, rest, times;
    float* out;
    std::size_t count;
};
void shrink(const ShrinkRequest&);

// Numbers of pixels below an opacity, below a log exposure, and beyond an angle.
struct HardlyShown {
    const float *opacity, *exposure, *angle;
    float least_opacity, least_exposure, most_angle;
    std::size_t count;
    std::size_t found[3];
};
void count_hardly_shown(HardlyShown&);

}  // namespace splat
