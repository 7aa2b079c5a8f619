// SPDX-License-Identifier: Apache-2.0
// The query's kernels in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "widths.hpp"

using namespace splat;

namespace {

// The number of harmonics, if they make a degree up to `highest`.
int bases_of(const char* name, std::size_t n, int highest) {
    for (int degree = 0; degree <= highest; ++degree)
        if (n == static_cast<std::size_t>((degree + 1) * (degree + 1))) return static_cast<int>(n);
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(n) +
                                " harmonics, which is no degree from 0 to " +
                                std::to_string(highest));
}

QueryGaussians gaussians_of(const View& view, const F2& means, const F3& sh, const F2& traits) {
    const std::size_t count = static_cast<std::size_t>(view.count);
    expect(means, "means", {count, 3});
    expect(sh, "sh", {count, sh.shape(1), 3});
    expect(traits, "traits", {count, traits.shape(1)});
    if (traits.shape(1) < fixed_traits) throw std::invalid_argument("traits has too few columns");
    return {means.data(), sh.data(), traits.data(), bases_of("sh", sh.shape(1), 4),
            bases_of("the field of traits", traits.shape(1) - fixed_traits, 3)};
}

void pack_query(nb::handle prepared, const F2& means, const F3& sh, const F2& traits,
                const Out2& values) {
    const View& view = prepared_view(prepared);
    const QueryGaussians gaussians = gaussians_of(view, means, sh, traits);
    expect(values, "values", {static_cast<std::size_t>(view.count), query_channels});
    nb::gil_scoped_release release;
    kernels().query->pack(view, gaussians, values.data());
}

std::vector<double> render_query(nb::handle prepared, const F2& means, const F3& sh,
                                 const F2& traits, const std::array<float, 3>& background,
                                 float field_floor, const Out3& center, const Out2& field,
                                 const Out3& maps, const Out2& depth) {
    const View& view = prepared_view(prepared);
    const std::size_t height = static_cast<std::size_t>(view.camera.height);
    const std::size_t width = static_cast<std::size_t>(view.camera.width);
    expect(center, "center", {height, width, 3});
    expect(field, "field", {height, width});
    expect(maps, "maps", {query_maps, height, width});
    expect(depth, "depth", {height, width});
    QueryRequest request = {gaussians_of(view, means, sh, traits),
                            {background[0], background[1], background[2]},
                            field_floor,
                            center.data(),
                            field.data(),
                            maps.data(),
                            depth.data(),
                            {}};
    {
        nb::gil_scoped_release release;
        kernels().query->render(view, request);
    }
    return {std::begin(request.moments), std::end(request.moments)};
}

void render_picture(nb::handle prepared, const F2& means, const F3& sh,
                    const std::array<float, 3>& background, const Out3& rgb, const Out2& alpha,
                    const Out2& depth) {
    const View& view = prepared_view(prepared);
    const std::size_t count = static_cast<std::size_t>(view.count);
    const std::size_t height = static_cast<std::size_t>(view.camera.height);
    const std::size_t width = static_cast<std::size_t>(view.camera.width);
    expect(means, "means", {count, 3});
    expect(sh, "sh", {count, sh.shape(1), 3});
    expect(rgb, "rgb", {height, width, 3});
    expect(alpha, "alpha", {height, width});
    expect(depth, "depth", {height, width});
    const PictureRequest request = {means.data(),
                                    sh.data(),
                                    bases_of("sh", sh.shape(1), 4),
                                    {background[0], background[1], background[2]},
                                    rgb.data(),
                                    alpha.data(),
                                    depth.data()};
    nb::gil_scoped_release release;
    kernels().query->picture(view, request);
}

std::vector<double> summarise_maps(const F3& maps) {
    const std::size_t height = maps.shape(1), width = maps.shape(2);
    expect(maps, "maps", {query_maps, height, width});
    if (height < 1 || width < 1 || height > 65536 || width > 65536)
        throw std::invalid_argument("image sides must be 1 to 65536 pixels");
    MapsRequest request = {maps.data(), static_cast<int>(height), static_cast<int>(width), {}};
    {
        nb::gil_scoped_release release;
        kernels().query->summarise(request);
    }
    return {std::begin(request.statistics), std::end(request.statistics)};
}

using Values = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

void expect_size(const char* name, std::size_t found, std::size_t wanted) {
    if (found != wanted)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) +
                                    " values, expected " + std::to_string(wanted));
}

std::array<double, 3> shares_hardly_shown(const F3& maps, float alpha, float exposure,
                                          float angle) {
    const std::size_t pixels = maps.shape(1) * maps.shape(2);
    expect(maps, "maps", {query_maps, maps.shape(1), maps.shape(2)});
    const auto plane = [&](int map) { return maps.data() + pixels * map; };
    HardlyShown q = {plane(map_alpha), plane(map_exposure),
                     plane(map_angle), alpha,
                     exposure,         angle,
                     pixels,           {}};
    {
        nb::gil_scoped_release release;
        count_hardly_shown(q);
    }
    const double all = static_cast<double>(pixels);
    return {q.found[0] / all, q.found[1] / all, q.found[2] / all};
}

float median(const Values& values) {
    nb::gil_scoped_release release;
    return kernels().query->median(values.data(), values.size());
}

double widen_map(const Values& values, const Values& opacity, float times, float plus, float prior,
                 bool squared, const Out& out) {
    expect_size("opacity", opacity.size(), values.size());
    expect_size("out", out.size(), values.size());
    nb::gil_scoped_release release;
    return widen(
        {values.data(), opacity.data(), times, plus, prior, squared, out.data(), values.size()});
}

void shrink_map(const Values& values, float unit, float kept, float rest, float times,
                const Out& out) {
    expect_size("out", out.size(), values.size());
    nb::gil_scoped_release release;
    shrink({values.data(), unit, kept, rest, times, out.data(), values.size()});
}

}  // namespace

void bind_query(nb::module_& m) {
    m.def("pack_query", &pack_query, nb::arg("view"), nb::arg("means"), nb::arg("sh"),
          nb::arg("traits"), nb::arg("values"));
    m.def("render_query", &render_query, nb::arg("view"), nb::arg("means"), nb::arg("sh"),
          nb::arg("traits"), nb::arg("background"), nb::arg("field_floor"), nb::arg("center"),
          nb::arg("field"), nb::arg("maps"), nb::arg("depth"));
    m.def("render_picture", &render_picture, nb::arg("view"), nb::arg("means"), nb::arg("sh"),
          nb::arg("background"), nb::arg("rgb"), nb::arg("alpha"), nb::arg("depth"));
    m.def("summarise_maps", &summarise_maps, nb::arg("maps"));
    m.def("shares_hardly_shown", &shares_hardly_shown, nb::arg("maps"), nb::arg("alpha"),
          nb::arg("exposure"), nb::arg("angle"));
    m.def("median", &median, nb::arg("values"));
    m.def("widen", &widen_map, nb::arg("values"), nb::arg("opacity"), nb::arg("times"),
          nb::arg("plus"), nb::arg("prior"), nb::arg("squared"), nb::arg("out"));
    m.def("shrink", &shrink_map, nb::arg("values"), nb::arg("unit"), nb::arg("kept"),
          nb::arg("rest"), nb::arg("times"), nb::arg("out"));
}
