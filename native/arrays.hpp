// SPDX-License-Identifier: Apache-2.0
// Arrays as the bindings take them, and the check of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "view.hpp"

namespace nb = nanobind;

using F1 = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using F2 = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using F3 = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using D2 = nb::ndarray<const double, nb::shape<4, 4>, nb::c_contig, nb::device::cpu>;
using B1 = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using B2 = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using I2 = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out1 = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out3 = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class A>
void expect(const A& array, const char* name, std::initializer_list<std::size_t> shape) {
    std::size_t axis = 0;
    bool same = array.ndim() == shape.size();
    for (std::size_t n : shape) same = same && array.shape(axis++) == n;
    if (same) return;
    std::string got, want;
    for (std::size_t k = 0; k < array.ndim(); ++k)
        got += (k ? ", " : "") + std::to_string(array.shape(k));
    for (std::size_t n : shape) want += (want.empty() ? "" : ", ") + std::to_string(n);
    throw std::invalid_argument(std::string(name) + " has shape [" + got + "], expected [" + want +
                                "]");
}

// The view inside a Python object of ours.
const splat::View& prepared_view(nb::handle object);

void bind_field(nb::module_& m);
void bind_query(nb::module_& m);
void bind_witnesses(nb::module_& m);
