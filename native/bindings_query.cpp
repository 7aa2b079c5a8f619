// SPDX-License-Identifier: Apache-2.0
// The summary of a packed query image, as Python calls it.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

#include "bindings.hpp"

namespace splat {
namespace {

std::vector<double> summarise_query(const F3& image, const std::array<float, 3>& background,
                                    float field_floor, const Out3& center, const Out2& field) {
    const std::size_t h = image.shape(0), w = image.shape(1);
    expect(image, "image", {h, w, query_channels});
    expect(center, "center", {h, w, 3});
    expect(field, "field", {h, w});
    if (h < 1 || w < 1 || h > 65536 || w > 65536)
        throw std::invalid_argument("image sides must be 1 to 65536 pixels");
    QuerySummary request = {image.data(),        static_cast<int>(h),
                            static_cast<int>(w), {background[0], background[1], background[2]},
                            field_floor,         center.data(),
                            field.data(),        {}};
    {
        nb::gil_scoped_release release;
        kernels().summarise_query(request);
    }
    return {request.statistics, request.statistics + query_statistics};
}

}  // namespace

void bind_query(nb::module_& m) { m.def("summarise_query", &summarise_query); }

}  // namespace splat
