// SPDX-License-Identifier: Apache-2.0
// The kernel that asks training photographs, in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace splat;

namespace {

using Out3OrNone = std::optional<Out3>;

std::vector<Witness> witnesses_of(const std::vector<B2>& pixels, const F2& geometry) {
    expect(geometry, "geometry", {pixels.size(), witness_numbers});
    std::vector<Witness> witnesses(pixels.size());
    for (std::size_t k = 0; k < pixels.size(); ++k) {
        const B2& found = pixels[k];
        if (found.shape(0) < 1 || found.shape(1) < witness_bytes + witness_padding ||
            (found.shape(1) - witness_padding) % witness_bytes)
            throw std::invalid_argument("pixels has rows of " + std::to_string(found.shape(1)) +
                                        " bytes, expected six per pixel and ten more");
        Witness& w = witnesses[k];
        w.pixels = found.data();
        w.height = static_cast<int>(found.shape(0));
        w.stride = static_cast<int>(found.shape(1));
        w.width = (w.stride - witness_padding) / witness_bytes;
        const float* numbers = geometry.data() + k * witness_numbers;
        for (float& x : w.rotation) x = *numbers++;
        for (float& x : w.shift) x = *numbers++;
        for (float& x : w.centre) x = *numbers++;
        for (float* x : {&w.fx, &w.fy, &w.cx, &w.cy, &w.log2_near, &w.log2_step}) *x = *numbers++;
    }
    return witnesses;
}

WitnessRequest request_of(const F2& depth, const F3& picture, const std::array<float, 4>& lens,
                          const std::vector<Witness>& witnesses) {
    const std::size_t height = depth.shape(0), width = depth.shape(1);
    if (height > 65536 || width > 65536)
        throw std::invalid_argument("image sides must be at most 65536 pixels");
    expect(picture, "picture", {height, width, 3});
    return {depth.data(),
            picture.data(),
            static_cast<int>(height),
            static_cast<int>(width),
            lens[0],
            lens[1],
            lens[2],
            lens[3],
            witnesses.data(),
            static_cast<int>(witnesses.size()),
            nullptr,
            nullptr,
            nullptr};
}

void ask_witnesses(const F2& depth, const F3& picture, const std::array<float, 4>& lens,
                   const std::vector<B2>& pixels, const F2& geometry, const Out3& maps) {
    const std::vector<Witness> witnesses = witnesses_of(pixels, geometry);
    WitnessRequest request = request_of(depth, picture, lens, witnesses);
    expect(maps, "maps", {witness_maps, depth.shape(0), depth.shape(1)});
    request.maps = maps.data();
    nb::gil_scoped_release release;
    kernels().ask_witnesses(request);
}

// Returns the mean scale, and how many pixels have a witness.
std::pair<double, uint64_t> guided_scale(const F2& depth, const F3& picture,
                                         const std::array<float, 4>& lens,
                                         const std::vector<B2>& pixels, const F2& geometry,
                                         const F2& field, const std::vector<float>& guide,
                                         const Out2& scale, const Out3OrNone& correction) {
    const std::vector<Witness> witnesses = witnesses_of(pixels, geometry);
    WitnessRequest request = request_of(depth, picture, lens, witnesses);
    const std::size_t height = depth.shape(0), width = depth.shape(1);
    expect(field, "field", {height, width});
    expect(scale, "scale", {height, width});
    if (correction) expect(*correction, "correction", {3, height, width});
    if (guide.size() < guide_numbers || (guide.size() - guide_numbers) % unit_numbers ||
        guide.size() > guide_numbers + most_units * unit_numbers)
        throw std::invalid_argument("a guide has 16 numbers, and 13 more for each of its units");
    std::vector<double> sums(height);
    std::vector<uint32_t> told(height);
    const float* rest = guide.data() + guide_weights;
    GuideRequest made = {
        field.data(), {},          rest[0],     rest[1], {rest[2], rest[3], rest[4]},
        scale.data(), sums.data(), told.data(), 0,       {}};
    std::copy_n(guide.data(), guide_weights, made.weights);
    made.unit_count = static_cast<int>((guide.size() - guide_numbers) / unit_numbers);
    for (int k = 0; k < made.unit_count; ++k) {
        const float* numbers = guide.data() + guide_numbers + k * unit_numbers;
        std::copy_n(numbers, guide_weights, made.units[k].weights);
        made.units[k].bias = numbers[guide_weights];
        made.units[k].share = numbers[guide_weights + 1];
    }
    request.correction = correction ? correction->data() : nullptr;
    request.guide = &made;
    {
        nb::gil_scoped_release release;
        kernels().ask_witnesses(request);
    }
    double sum = 0;
    uint64_t known = 0;
    for (std::size_t row = 0; row < height; ++row) sum += sums[row], known += told[row];
    return {sum / (double(height) * double(width)), known};
}

}  // namespace

void bind_witnesses(nb::module_& m) {
    m.def("ask_witnesses", &ask_witnesses, nb::arg("depth"), nb::arg("picture"), nb::arg("lens"),
          nb::arg("pixels"), nb::arg("geometry"), nb::arg("maps"));
    m.def("guided_scale", &guided_scale, nb::arg("depth"), nb::arg("picture"), nb::arg("lens"),
          nb::arg("pixels"), nb::arg("geometry"), nb::arg("field"), nb::arg("guide"),
          nb::arg("scale"), nb::arg("correction").none());
}
