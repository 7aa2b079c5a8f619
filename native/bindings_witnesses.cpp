// SPDX-License-Identifier: Apache-2.0
// The kernel that asks training photographs, in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace splat;

namespace {

using Bytes3 = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void ask_witnesses(const F2& depth, const F3& picture, const std::array<float, 4>& lens,
                   const std::vector<Bytes3>& pixels, const F2& geometry, const Out3& maps) {
    const std::size_t height = depth.shape(0), width = depth.shape(1);
    if (height > 65536 || width > 65536)
        throw std::invalid_argument("image sides must be at most 65536 pixels");
    expect(picture, "picture", {height, width, 3});
    expect(geometry, "geometry", {pixels.size(), witness_numbers});
    expect(maps, "maps", {witness_maps, height, width});
    std::vector<Witness> witnesses(pixels.size());
    for (std::size_t k = 0; k < pixels.size(); ++k) {
        const Bytes3& found = pixels[k];
        expect(found, "pixels", {found.shape(0), found.shape(1), witness_bytes});
        Witness& w = witnesses[k];
        w.pixels = found.data();
        w.height = static_cast<int>(found.shape(0));
        w.width = static_cast<int>(found.shape(1));
        const float* numbers = geometry.data() + k * witness_numbers;
        for (float& x : w.rotation) x = *numbers++;
        for (float& x : w.shift) x = *numbers++;
        for (float& x : w.centre) x = *numbers++;
        for (float* x : {&w.fx, &w.fy, &w.cx, &w.cy}) *x = *numbers++;
    }
    const WitnessRequest request = {depth.data(),
                                    picture.data(),
                                    static_cast<int>(height),
                                    static_cast<int>(width),
                                    lens[0],
                                    lens[1],
                                    lens[2],
                                    lens[3],
                                    witnesses.data(),
                                    static_cast<int>(witnesses.size()),
                                    maps.data()};
    nb::gil_scoped_release release;
    kernels().ask_witnesses(request);
}

}  // namespace

void bind_witnesses(nb::module_& m) {
    m.def("ask_witnesses", &ask_witnesses, nb::arg("depth"), nb::arg("picture"), nb::arg("lens"),
          nb::arg("pixels"), nb::arg("geometry"), nb::arg("maps"));
}
