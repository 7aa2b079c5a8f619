// SPDX-License-Identifier: Apache-2.0
// What the binding files share: arrays as they are taken, and the checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

#include "dispatch.hpp"

namespace splat {

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

inline int channels_of(std::size_t n) {
    if (n < 1 || n > 4096)
        throw std::invalid_argument("between 1 and 4096 channels, got " + std::to_string(n));
    return static_cast<int>(n);
}

struct Harmonics {
    int bases, active;
    Harmonics(const F3& sh, std::size_t count, int degree) {
        bases = static_cast<int>(sh.shape(1));
        active = (degree + 1) * (degree + 1);
        expect(sh, "sh", {count, sh.shape(1), 3});
        if (degree < 0 || degree > 4 || active > bases)
            throw std::invalid_argument("degree " + std::to_string(degree) + " needs " +
                                        std::to_string(active) + " harmonics, sh has " +
                                        std::to_string(bases));
    }
};

// Rows of `traits` end in the coefficients of a residual field of degree 0 to 3.
struct FieldBasis {
    int bases;
    explicit FieldBasis(const F2& traits) {
        bases = static_cast<int>(traits.shape(1)) - fixed_traits;
        if (bases != 1 && bases != 4 && bases != 9 && bases != 16)
            throw std::invalid_argument("traits has " + std::to_string(traits.shape(1)) +
                                        " columns; a field of degree 0 to 3 makes 7, 10, 15, 22");
    }
};

void bind_query(nb::module_& m);

}  // namespace splat
