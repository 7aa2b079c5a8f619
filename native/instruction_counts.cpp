// SPDX-License-Identifier: Apache-2.0
// The hot kernels, once each, on a small made scene: what `make perf` counts instructions of.
// One thread, one instruction set, no clock and no library of random numbers, so that the
// counts are the same on every run.
#include <cmath>
#include <cstdio>
#include <vector>

#include "dispatch.hpp"

using namespace splat;

namespace {

constexpr int gaussians = 20000, width = 320, height = 208, bases = 16, field_bases = 9;

struct Numbers {
    uint64_t state = 1;
    float operator()(float low, float high) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return low + (high - low) * static_cast<float>(state >> 40) / 16777216.0f;
    }
    std::vector<float> table(std::size_t size, float low, float high) {
        std::vector<float> values(size);
        for (float& value : values) value = (*this)(low, high);
        return values;
    }
};

struct Scene {
    Numbers draw;
    std::vector<float> means = draw.table(3 * gaussians, -2.0f, 2.0f);
    std::vector<float> quats = draw.table(4 * gaussians, -1.0f, 1.0f);
    std::vector<float> log_scales = draw.table(3 * gaussians, -4.6f, -3.2f);
    std::vector<float> logits = draw.table(gaussians, -3.0f, 3.0f);
    std::vector<float> sh = draw.table(3 * bases * gaussians, -0.2f, 0.2f);
    std::vector<float> traits = draw.table((fixed_traits + field_bases) * gaussians, 0.0f, 0.2f);
    std::vector<float> photo = draw.table(3 * width * height, 0.0f, 1.0f);
    View view;
    Scene() {
        for (std::size_t k = 2; k < means.size(); k += 3) means[k] += 4.0f;
        view.camera = {{1, 0, 0, 0, 1, 0, 0, 0, 1},
                       {0, 0, 0},
                       260,
                       260,
                       width / 2.0,
                       height / 2.0,
                       width,
                       height,
                       false};
    }
    RawSplats splats() const {
        return {means.data(), quats.data(), log_scales.data(), logits.data(), gaussians};
    }
};

std::vector<float> image(int channels) { return std::vector<float>(channels * width * height); }

}  // namespace

// Named by themselves, so that a profiler can tell them apart.
extern "C" {

__attribute__((noinline)) void count_prepare(const Kernels& k, Scene& s) {
    k.prepare(s.view, s.splats());
}
__attribute__((noinline)) void count_picture(const Kernels& k, Scene& s, std::vector<float>& out) {
    const std::size_t pixels = width * height;
    const PictureRequest request = {
        s.means.data(),         s.sh.data(), bases, {0, 0, 0}, out.data(), out.data() + 3 * pixels,
        out.data() + 4 * pixels};
    k.query->picture(s.view, request);
}
__attribute__((noinline)) void count_query(const Kernels& k, Scene& s, std::vector<float>& out) {
    const std::size_t pixels = width * height;
    const QueryGaussians known = {s.means.data(), s.sh.data(), s.traits.data(), bases, field_bases};
    QueryRequest request = {known,
                            {0, 0, 0},
                            1e-3f,
                            out.data(),
                            out.data() + 3 * pixels,
                            out.data() + 4 * pixels,
                            out.data() + 9 * pixels,
                            {}};
    k.query->render(s.view, request);
}
__attribute__((noinline)) void count_summarise(const Kernels& k, const std::vector<float>& out) {
    MapsRequest request = {out.data() + 4 * width * height, height, width, {}};
    k.query->summarise(request);
}
__attribute__((noinline)) void count_scatter(const Kernels& k, Scene& s, std::vector<float>& out) {
    k.scatter(s.view, s.photo.data(), 3, out.data());
}
__attribute__((noinline)) void count_field_normal(const Kernels& k, Scene& s,
                                                  std::vector<double>& result) {
    k.field->normal(s.view, {s.means.data(), s.sh.data(), nullptr, field_bases, result.data()});
}
__attribute__((noinline)) void count_witnesses(const Kernels& k, const std::vector<float>& out,
                                               const std::vector<Witness>& witnesses,
                                               std::vector<float>& scale) {
    const std::size_t pixels = width * height;
    double sums[height];
    uint32_t told[height];
    const GuideRequest guide = {out.data() + 3 * pixels,
                                {0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f},
                                0.0f,
                                0.0f,
                                {},
                                scale.data(),
                                sums,
                                told};
    const WitnessRequest request = {out.data() + 9 * pixels,
                                    out.data(),
                                    height,
                                    width,
                                    260,
                                    260,
                                    width / 2.0f,
                                    height / 2.0f,
                                    witnesses.data(),
                                    static_cast<int>(witnesses.size()),
                                    nullptr,
                                    nullptr,
                                    &guide};
    k.ask_witnesses(request);
}
}

int main(int count, char** arguments) {
    set_thread_count(1);
    if (count != 2 || !choose_kernels(arguments[1])) {
        std::fprintf(stderr, "usage: instruction_counts INSTRUCTION_SET\n");
        return 2;
    }
    const Kernels& k = kernels();
    Scene scene;
    std::vector<float> out = image(query_channels), sums(3 * gaussians), scale = image(1);
    std::vector<double> result(field_bases * gaussians);
    constexpr int stride = witness_bytes * width + witness_padding;
    std::vector<uint8_t> pixels(stride * height, 0x40);
    Witness near = {pixels.data(), height,
                    width,         stride,
                    1.5f,  // log2 of depth 2.8
                    0.0f,          {1, 0, 0, 0, 1, 0, 0, 0, 1},
                    {0.1f, 0, 0},  {-0.1f, 0, 0},
                    260,           260,
                    width / 2.0f,  height / 2.0f};
    count_prepare(k, scene);
    count_picture(k, scene, out);
    count_query(k, scene, out);
    count_summarise(k, out);
    count_witnesses(k, out, std::vector<Witness>(4, near), scale);
    count_scatter(k, scene, sums);
    count_field_normal(k, scene, result);
    std::printf("drawn %zu entries %zu\n", scene.view.drawn.size, scene.view.entries.size);
}
