// SPDX-License-Identifier: Apache-2.0
// One Adam step over a table of parameters, optionally only over some of its rows.
#include <algorithm>
#include <cmath>

#include "isa.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

struct Coefficients {
    float beta1, beta2, step, scale, epsilon;
};

inline float step_one(const Coefficients& k, float p, float g, float& m, float& v) {
    m = k.beta1 * m + (1 - k.beta1) * g;
    v = k.beta2 * v + (1 - k.beta2) * g * g;
    return p - k.step * m / (std::sqrt(v) * k.scale + k.epsilon);
}

void step_span(const Coefficients& k, float* p, float* g, float* m, float* v, int64_t n,
               bool clear) {
    const Vec beta1 = Vec::all(k.beta1), rest1 = Vec::all(1 - k.beta1);
    const Vec beta2 = Vec::all(k.beta2), rest2 = Vec::all(1 - k.beta2);
    const Vec step = Vec::all(k.step), scale = Vec::all(k.scale), epsilon = Vec::all(k.epsilon);
    int64_t i = 0;
    for (; i + Vec::width <= n; i += Vec::width) {
        const Vec grad = Vec::load(g + i);
        const Vec first = beta1 * Vec::load(m + i) + rest1 * grad;
        const Vec second = beta2 * Vec::load(v + i) + rest2 * grad * grad;
        first.store(m + i);
        second.store(v + i);
        (Vec::load(p + i) - step * first / (sqrt(second) * scale + epsilon)).store(p + i);
    }
    for (; i < n; ++i) p[i] = step_one(k, p[i], g[i], m[i], v[i]);
    if (clear) std::fill_n(g, n, 0.0f);
}

}  // namespace

// parameter -= rate * (m / c1) / (sqrt(v / c2) + epsilon), c = 1 - beta^step.
void adam(const AdamRequest& r) {
    const Coefficients k = {float(r.beta1), float(r.beta2), float(r.rate / r.correction1),
                            float(1.0 / std::sqrt(r.correction2)), float(r.epsilon)};
    const int64_t chunk = std::max<int64_t>(1, (1 << 14) / std::max(1, r.columns));
    const int blocks = static_cast<int>((r.row_count + chunk - 1) / chunk);
    parallel_for(blocks, [&](int block, int) {
        const int64_t begin = block * chunk, end = std::min(r.row_count, begin + chunk);
        const int width = r.last_column - r.first_column;
        const auto step = [&](int64_t at, int64_t n) {
            step_span(k, r.parameter + at, r.grad + at, r.first + at, r.second + at, n, r.clear);
        };
        const auto span = [&](int64_t first, int64_t last) {
            if (width == r.columns) return step(first * r.columns, (last - first) * r.columns);
            for (int64_t row = first; row < last; ++row)
                step(row * r.columns + r.first_column, width);
        };
        if (!r.rows) return span(begin, end);
        for (int64_t row = begin; row < end; ++row) {
            if (!r.rows[row]) continue;
            const int64_t first = row;
            while (row < end && r.rows[row]) ++row;
            span(first, row);
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
