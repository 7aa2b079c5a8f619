// SPDX-License-Identifier: Apache-2.0
// The table a query composites: colour, one, depth, log exposure, support angle, spread,
// residual field and residual summary of each drawn Gaussian, towards one camera.
#include <cmath>

#include "harmonics.hpp"
#include "partials.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

#if defined(SPLAT_AVX512)
constexpr int group = 16;
#elif defined(SPLAT_AVX2)
constexpr int group = 8;
#else
constexpr int group = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * group)));  // one lane per Gaussian

inline Floats square_root(Floats a) {
    Floats r;
    for (int k = 0; k < group; ++k) r[k] = std::sqrt(a[k]);
    return r;
}

// Angle of a vector (c, s) with s >= 0, in [0, pi]; pi / 2 for the zero vector. An arctangent
// is exact to rounding at all angles, where the arccosine of c alone loses half of its digits
// near 0 and pi. Cephes' polynomial on [-tan(pi/8), tan(pi/8)].
inline Floats angle_of(Floats c, Floats s) {
    constexpr float half_pi = 1.5707963267948966f, tan_eighth = 0.41421356237f;
    const Floats size = c < 0.0f ? -c : c;
    const Floats low = s < size ? s : size, high = s < size ? size : s;
    const Floats slope = low / (high > 0.0f ? high : Floats{} + 1.0f);
    const Floats turned = (slope - 1.0f) / (slope + 1.0f);
    const Floats x = slope > tan_eighth ? turned : slope;
    const Floats start = slope > tan_eighth ? Floats{} + 0.5f * half_pi : Floats{};
    const Floats z = x * x;
    Floats p = 8.05374449538e-2f * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    const Floats octant = start + (p * z * x + x);
    const Floats quadrant = s < size ? octant : half_pi - octant;
    return c < 0.0f ? 2 * half_pi - quadrant : quadrant;
}

// A group of Gaussians, one lane each.
struct Group {
    Floats offset[3];  // from the Gaussian to the camera
    Floats trait[fixed_traits];
    Floats coefficient[max_bases];
};

void load_group(const QueryTraits& traits, const double centre[3], const uint32_t* drawn, int count,
                Group& g) {
    const int columns = fixed_traits + traits.field_bases;
    for (int k = 0; k < group; ++k) {
        const std::size_t i = drawn[k < count ? k : 0];
        const float* row = traits.traits + i * columns;
        for (int c = 0; c < 3; ++c)
            g.offset[c][k] = static_cast<float>(centre[c] - traits.means[3 * i + c]);
        for (int c = 0; c < fixed_traits; ++c) g.trait[c][k] = row[c];
        for (int c = 0; c < traits.field_bases; ++c) g.coefficient[c][k] = row[fixed_traits + c];
    }
}

void pack_group(const QueryTraits& traits, const Group& g, const uint32_t* drawn,
                const float* depths, int count, float* values) {
    const Floats *o = g.offset, *seen = g.trait + 3;
    const Floats length = square_root(o[0] * o[0] + o[1] * o[1] + o[2] * o[2]);
    const Floats x = o[0] / length, y = o[1] / length, z = o[2] / length;
    const Floats cosine = x * seen[0] + y * seen[1] + z * seen[2];
    const Floats a = y * seen[2] - z * seen[1], b = z * seen[0] - x * seen[2],
                 c = x * seen[1] - y * seen[0];
    const Floats angle = angle_of(cosine, square_root(a * a + b * b + c * c));

    Floats basis[max_bases], field = {};
    harmonics(x, y, z, traits.field_bases, basis);
    for (int k = 0; k < traits.field_bases; ++k) field += basis[k] * g.coefficient[k];

    for (int k = 0; k < count; ++k) {
        float* row = values + std::size_t(drawn[k]) * query_channels;
        row[channel_one] = 1.0f;
        row[channel_depth] = depths[k];
        row[channel_exposure] = g.trait[0][k];
        row[channel_angle] = angle[k];
        row[channel_spread] = g.trait[1][k];
        row[channel_field] = field[k];
        row[channel_residual] = g.trait[2][k];
    }
}

}  // namespace

void pack_query(const View& view, const QueryTraits& traits, float* values) {
    double centre[3];
    camera_centre(view.camera, centre);
    // Footprints lie front to back; their depths are brought into the order of the rows.
    Array<float> depths;
    depths.resize(view.drawn.size);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int n = begin; n < end; ++n)
            depths[view.footprints[n].rank] = view.footprints[n].depth;
    });
    for_drawn_ranges(view, [&](int begin, int end) {
        shade_rows(view, begin, end, traits.means, traits.sh, traits.bases, traits.active,
                   query_channels, values);
        Group g;
        for (int n = begin; n < end; n += group) {
            const int count = std::min(group, end - n);
            load_group(traits, centre, view.drawn.data + n, count, g);
            pack_group(traits, g, view.drawn.data + n, depths.data + n, count, values);
        }
    });
}

}  // namespace SPLAT_ISA
}  // namespace splat
