// SPDX-License-Identifier: Apache-2.0
// The query's kernels in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace splat;

namespace {

// The degree whose harmonics are this many, if there is one up to `highest`.
int bases_of(const char* name, std::size_t n, int highest) {
    for (int degree = 0; degree <= highest; ++degree)
        if (n == static_cast<std::size_t>((degree + 1) * (degree + 1))) return static_cast<int>(n);
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(n) +
                                " harmonics, which is no degree from 0 to " +
                                std::to_string(highest));
}

void pack_query(nb::handle prepared, const F2& means, const F3& sh, const F2& traits,
                const Out2& values) {
    const View& view = prepared_view(prepared);
    const std::size_t count = static_cast<std::size_t>(view.count);
    expect(means, "means", {count, 3});
    expect(sh, "sh", {count, sh.shape(1), 3});
    expect(traits, "traits", {count, traits.shape(1)});
    expect(values, "values", {count, query_channels});
    if (traits.shape(1) < fixed_traits) throw std::invalid_argument("traits has too few columns");
    const int colour = bases_of("sh", sh.shape(1), 4);
    const int field = bases_of("the field of traits", traits.shape(1) - fixed_traits, 3);
    const QueryTraits request = {means.data(), sh.data(), traits.data(), colour, field};
    nb::gil_scoped_release release;
    kernels().query->pack(view, request, values.data());
}

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
        kernels().query->summarise(request);
    }
    return {request.statistics, request.statistics + query_statistics};
}

}  // namespace

void bind_query(nb::module_& m) {
    m.def("pack_query", &pack_query, nb::arg("view"), nb::arg("means"), nb::arg("sh"),
          nb::arg("traits"), nb::arg("values"));
    m.def("summarise_query", &summarise_query, nb::arg("image"), nb::arg("background"),
          nb::arg("field_floor"), nb::arg("center"), nb::arg("field"));
}
