// SPDX-License-Identifier: Apache-2.0
// The native core without Python, on any processor, also an emulated one: does it agree with the
// reference renderer, is `scatter` the transpose of `composite`, and does any number of threads
// give the same bits? tests/raster/test_self_test.py makes the same scene and the stored values.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "dispatch.hpp"
#include "self_test_values.hpp"

using namespace splat;
using Floats = std::vector<float>;

namespace {

constexpr int gaussians = 300, width = 70, height = 45, channels = 3;
constexpr int pixel_step = 97, gaussian_step = 50;  // of the stored values

// Numbers with twelve bits: whatever is made of them below is exact in a float.
struct Numbers {
    uint32_t state = 1;
    float next() {
        state = state * 1664525u + 1013904223u;
        return float(state >> 20) / 4096.0f;
    }
    Floats many(int count, float factor, float offset) {
        Floats out(count);
        for (float& x : out) x = factor * next() + offset;
        return out;
    }
};

struct Scene {
    Floats means, quats, log_scales, logits, colours, pattern;
    Scene() {
        Numbers numbers;
        means = numbers.many(3 * gaussians, 4, -2);
        quats = numbers.many(4 * gaussians, 2, -1);
        log_scales = numbers.many(3 * gaussians, 2, -3);
        logits = numbers.many(gaussians, 4, -2);
        colours = numbers.many(channels * gaussians, 1, 0);
        pattern = numbers.many(channels * width * height, 2, -1);
    }
    RawSplats splats() const {
        return {means.data(), quats.data(), log_scales.data(), logits.data(), gaussians};
    }
};

constexpr CameraModel camera = {
    {0.8, 0, -0.6, 0, 1, 0, 0.6, 0, 0.8}, {0, 0, 5}, 60, 62, 34.5, 23, width, height, false};

// Everything that is compared, for one instruction set and number of threads.
struct Results {
    Floats image = Floats(channels * width * height), scattered = Floats(channels * gaussians),
           normal = Floats(channels * gaussians), grad_colours = Floats(channels * gaussians),
           grad_means = Floats(3 * gaussians), grad_quats = Floats(4 * gaussians),
           grad_log_scales = Floats(3 * gaussians), grad_logits = Floats(gaussians),
           grad_means2d = Floats(2 * gaussians);

    Results(const Kernels& k, const Scene& scene) {
        View view;
        view.camera = camera;
        k.prepare(view, scene.splats());
        k.composite(view, scene.colours.data(), channels, image.data());
        k.scatter(view, scene.pattern.data(), channels, scattered.data());
        k.normal(view, scene.colours.data(), channels, normal.data());
        k.backward(view, scene.splats(),
                   {scene.colours.data(), image.data(), scene.pattern.data(), channels,
                    grad_colours.data(), grad_means.data(), grad_quats.data(),
                    grad_log_scales.data(), grad_logits.data(), grad_means2d.data(), nullptr});
    }
    bool same_bits(const Results& other) const {
        const auto same = [](const Floats& a, const Floats& b) {
            return !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
        };
        return same(image, other.image) && same(scattered, other.scattered) &&
               same(normal, other.normal) && same(grad_colours, other.grad_colours) &&
               same(grad_means, other.grad_means) && same(grad_quats, other.grad_quats) &&
               same(grad_log_scales, other.grad_log_scales) && same(grad_logits, other.grad_logits);
    }
};

double dot(const Floats& a, const Floats& b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += double(a[k]) * double(b[k]);
    return sum;
}

// Largest difference from the stored rows, relative to the largest of them.
double difference(const Floats& found, int columns, int step, const double* stored) {
    double most = 0, largest = 0;
    const int rows = static_cast<int>(found.size()) / columns;
    for (int row = 0; row < rows; row += step)
        for (int c = 0; c < columns; ++c, ++stored) {
            most = std::fmax(most, std::fabs(found[row * columns + c] - *stored));
            largest = std::fmax(largest, std::fabs(*stored));
        }
    return most / largest;
}

int failures = 0;

void report(const char* set, const char* what, double value, double limit) {
    const bool good = value <= limit;  // false for a NaN
    failures += !good;
    std::printf("%-10s  %-34s  %8.1e  %s\n", set, what, value, good ? "ok" : "FAILED");
}

void check(const Kernels& k, const Scene& scene) {
    set_thread_count(1);
    const Results one(k, scene);
    report(k.name, "image against the reference",
           difference(one.image, channels, pixel_step, reference::image), 2e-5);
    double gradients = 0;
    const auto compare = [&](const Floats& found, int columns, const double* stored) {
        gradients = std::fmax(gradients, difference(found, columns, gaussian_step, stored));
    };
    compare(one.grad_means, 3, reference::grad_means);
    compare(one.grad_quats, 4, reference::grad_quats);
    compare(one.grad_log_scales, 3, reference::grad_log_scales);
    compare(one.grad_logits, 1, reference::grad_logits);
    compare(one.grad_colours, channels, reference::grad_colours);
    report(k.name, "gradients against the reference", gradients, 1e-4);
    // The transpose is of the vector kernels: `scalar` composites in another way.
    const double ahead = dot(one.image, scene.pattern), back = dot(scene.colours, one.scattered);
    report(k.name, "<A x, y> - <x, A'y>, relative", std::fabs(ahead - back) / std::fabs(ahead),
           1e-5);
    const double energy = dot(one.image, one.image), through = dot(scene.colours, one.normal);
    report(k.name, "<A x, A x> - <x, A'A x>, relative", std::fabs(energy - through) / energy, 1e-5);
    int different = 0;
    for (int threads : {2, 3, 7}) {
        set_thread_count(threads);
        different += !one.same_bits(Results(k, scene));
    }
    report(k.name, "other bits with 2, 3 or 7 threads", different, 0);
}

}  // namespace

int main() {
    const Scene scene;
    for (const Kernels* k : available_kernels()) check(*k, scene);
    std::printf("%s\n", failures ? "self-test FAILED" : "self-test passed");
    return failures != 0;
}
