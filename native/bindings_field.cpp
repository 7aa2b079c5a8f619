// SPDX-License-Identifier: Apache-2.0
// The residual field's kernels in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace splat;

namespace {

using Int1 = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Double1 = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Double2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Double3 = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

struct Sizes {
    std::size_t count, height, width;
    explicit Sizes(const View& view)
        : count(static_cast<std::size_t>(view.count)),
          height(static_cast<std::size_t>(view.camera.height)),
          width(static_cast<std::size_t>(view.camera.width)) {}
};

int bases_of(std::size_t n) {
    if (n != 1 && n != 4 && n != 9 && n != 16)
        throw std::invalid_argument("a field has 1, 4, 9 or 16 harmonics, got " +
                                    std::to_string(n));
    return static_cast<int>(n);
}

const uint8_t* mask_of(const std::optional<B2>& mask, const Sizes& size) {
    if (!mask) return nullptr;
    expect(*mask, "mask", {size.height, size.width});
    return mask->data();
}

void survey(nb::handle prepared, const F2& means, const F2& colours, const F3& photo,
            std::tuple<float, float, float> background, const std::optional<B2>& mask,
            const Out2& support, const Double3& moments, const Out2& blocks, const Double1& squares,
            const Double1& energy, const Int1& histogram) {
    const View& view = prepared_view(prepared);
    const Sizes size(view);
    const std::size_t bases = moments.shape(2), bins = histogram.shape(0);
    expect(means, "means", {size.count, 3});
    expect(colours, "colours", {size.count, 3});
    expect(photo, "photo", {size.height, size.width, 3});
    expect(support, "support", {size.count, 5});
    expect(moments, "moments", {size.count, 2, bases});
    expect(blocks, "blocks", {size.count, bases * (bases + 1) / 2});
    expect(squares, "squares", {size.count});
    expect(energy, "energy", {4});
    if (bins < 1 || bins > (1u << 24))
        throw std::invalid_argument("a histogram has 1 to 2^24 bins, got " + std::to_string(bins));
    const auto [red, green, blue] = background;
    const SurveyRequest request = {means.data(),           colours.data(),      photo.data(),
                                   {red, green, blue},     mask_of(mask, size), bases_of(bases),
                                   static_cast<int>(bins), support.data(),      moments.data(),
                                   blocks.data(),          squares.data(),      energy.data(),
                                   histogram.data()};
    nb::gil_scoped_release release;
    kernels().field->survey(view, request);
}

void field_normal(nb::handle prepared, const F2& means, const F2& coefficients,
                  const std::optional<B2>& mask, const Double2& result) {
    const View& view = prepared_view(prepared);
    const Sizes size(view);
    const std::size_t bases = coefficients.shape(1);
    expect(means, "means", {size.count, 3});
    expect(coefficients, "coefficients", {size.count, bases});
    expect(result, "result", {size.count, bases});
    const FieldNormalRequest request = {means.data(), coefficients.data(), mask_of(mask, size),
                                        bases_of(bases), result.data()};
    nb::gil_scoped_release release;
    kernels().field->normal(view, request);
}

void field_values(nb::handle prepared, const F2& means, const F2& coefficients,
                  const Out1& values) {
    const View& view = prepared_view(prepared);
    const Sizes size(view);
    const std::size_t bases = coefficients.shape(1);
    expect(means, "means", {size.count, 3});
    expect(coefficients, "coefficients", {size.count, bases});
    expect(values, "values", {size.count});
    const int known = bases_of(bases);
    nb::gil_scoped_release release;
    kernels().field->values(view, means.data(), coefficients.data(), known, values.data());
}

}  // namespace

void bind_field(nb::module_& m) {
    m.def("survey", &survey, nb::arg("view"), nb::arg("means"), nb::arg("colours"),
          nb::arg("photo"), nb::arg("background"), nb::arg("mask").none(), nb::arg("support"),
          nb::arg("moments"), nb::arg("blocks"), nb::arg("squares"), nb::arg("energy"),
          nb::arg("histogram"));
    m.def("field_normal", &field_normal, nb::arg("view"), nb::arg("means"), nb::arg("coefficients"),
          nb::arg("mask").none(), nb::arg("result"));
    m.def("field_values", &field_values, nb::arg("view"), nb::arg("means"), nb::arg("coefficients"),
          nb::arg("values"));
}
