// SPDX-License-Identifier: Apache-2.0
// What a query composites of each drawn Gaussian, towards one camera: colour, one, depth, log
// exposure, support angle, spread, residual field and residual summary. One vector holds the
// same quantity of several Gaussians.
#include "harmonics.hpp"
#include "partials.hpp"
#include "simd.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

constexpr int group = Vec::width;  // Gaussians that are packed at a time
constexpr int fetched = 16;        // rows of traits fetched before they are needed
constexpr int max_field_bases = 16;
constexpr float pi = 3.14159265358979f;

// `b` where the mask holds, `a` elsewhere, up to the rounding of their difference.
inline Vec choose(Vec a, Vec b, Mask m) { return a + keep(b - a, m); }

// Angle of a vector (c, s) with s >= 0, in [0, pi]; pi for the zero vector: what no view saw
// is as far off as can be. An arctangent is exact to rounding at all angles, where the
// arccosine of c alone loses half of its digits near 0 and pi. Cephes' polynomial.
inline Vec angle_of(Vec c, Vec s) {
    const Vec one = Vec::all(1.0f), tan_eighth = Vec::all(0.41421356237f);
    const Vec size = abs(c), high = max(s, size), least = Vec::all(1e-30f);
    const Vec slope = min(s, size) / max(high, least);
    const Mask steep = slope > tan_eighth;
    const Vec x = choose(slope, (slope - one) / (slope + one), steep), z = x * x;
    Vec p = Vec::all(8.05374449538e-2f);
    p = fma(p, z, Vec::all(-1.38776856032e-1f));
    p = fma(p, z, Vec::all(1.99777106478e-1f));
    p = fma(p, z, Vec::all(-3.33329491539e-1f));
    const Vec octant = keep(Vec::all(pi / 4), steep) + fma(p * z, x, x);
    const Vec quadrant = choose(octant, Vec::all(pi / 2) - octant, s > size);
    const Vec half = choose(quadrant, Vec::all(pi) - quadrant, c < Vec::all(0.0f));
    return choose(half, Vec::all(pi), high < least);
}

// Some drawn Gaussians, one lane each; lanes from the last one on repeat it.
struct Group {
    Vec offset[3];  // from the Gaussian to the camera
    Vec trait[fixed_traits];
    Vec coefficient[max_field_bases];
};

void load_group(const QueryGaussians& q, const double centre[3], const uint32_t* drawn, int count,
                Group& g) {
    alignas(64) float block[3 + fixed_traits + max_field_bases][group];
    const int columns = fixed_traits + q.field_bases;
    for (int k = 0; k < group; ++k) {
        const std::size_t i = drawn[std::min(k, count - 1)];
        const float* row = q.traits + i * columns;
        // Differences are taken in double, they may be small.
        for (int c = 0; c < 3; ++c)
            block[c][k] = static_cast<float>(centre[c] - q.means[3 * i + c]);
        for (int c = 0; c < columns; ++c) block[3 + c][k] = row[c];
    }
    for (int c = 0; c < 3; ++c) g.offset[c] = Vec::load(block[c]);
    for (int c = 0; c < fixed_traits; ++c) g.trait[c] = Vec::load(block[3 + c]);
    for (int c = 0; c < q.field_bases; ++c)
        g.coefficient[c] = Vec::load(block[3 + fixed_traits + c]);
}

// What depends on the direction towards the camera: support angle and field.
void look(const Group& g, int bases, Vec& angle, Vec& field) {
    Vec x = g.offset[0], y = g.offset[1], z = g.offset[2];
    // Scaled by the largest part first, so that no square leaves the range of float.
    const Vec one = Vec::all(1.0f), largest = max(max(abs(x), abs(y)), abs(z));
    const Vec unit = one / max(largest, Vec::all(1e-37f));
    x = x * unit, y = y * unit, z = z * unit;
    const Vec r = one / sqrt(fma(x, x, fma(y, y, z * z)));
    x = x * r, y = y * r, z = z * r;

    const Vec* seen = g.trait + 3;
    const Vec cosine = fma(x, seen[0], fma(y, seen[1], z * seen[2]));
    const Vec a = y * seen[2] - z * seen[1];
    const Vec b = z * seen[0] - x * seen[2];
    const Vec c = x * seen[1] - y * seen[0];
    angle = angle_of(cosine, sqrt(fma(a, a, fma(b, b, c * c))));

    Vec basis[max_field_bases];
    harmonics(x, y, z, bases, basis);
    field = Vec::all(0.0f);
    for (int k = 0; k < bases; ++k) field = fma(basis[k], g.coefficient[k], field);
}

}  // namespace

void pack_query_rows(const View& view, const QueryGaussians& q, float* rows) {
    double centre[3];
    camera_centre(view.camera, centre);
    shade_rows(view, q.means, q.sh, q.bases, query_row, rows + channel_rgb);
    depth_rows(view, query_row, rows + channel_depth);
    const std::size_t columns = fixed_traits + q.field_bases;
    for_drawn_ranges(view, [&](int begin, int end) {
        alignas(64) float angles[group], fields[group], fixed[3][group];
        Group g;
        for (int n = begin; n < end; n += group) {
            const uint32_t* drawn = view.drawn.data + n;
            const int count = std::min(group, end - n);
            for (int k = n + fetched; k < std::min(n + fetched + group, end); ++k) {
                const float* row = q.traits + view.drawn[k] * columns;
                __builtin_prefetch(row);
                __builtin_prefetch(row + columns - 1);  // most rows lie in two cache lines
                __builtin_prefetch(q.means + 3 * view.drawn[k]);
            }
            load_group(q, centre, drawn, count, g);
            Vec angle, field;
            look(g, q.field_bases, angle, field);
            angle.store(angles);
            field.store(fields);
            for (int c = 0; c < 3; ++c) g.trait[c].store(fixed[c]);
            for (int k = 0; k < count; ++k) {
                float* row = rows + std::size_t(n + k) * query_row;
                row[channel_one] = 1.0f;
                row[channel_exposure] = fixed[0][k];
                row[channel_angle] = angles[k];
                row[channel_spread] = fixed[1][k];
                row[channel_field] = fields[k];
                row[channel_residual] = fixed[2][k];
            }
        }
    });
}

void pack_query(const View& view, const QueryGaussians& q, float* values) {
    Array<float> rows;
    rows.resize(view.drawn.size * query_row);
    pack_query_rows(view, q, rows.data);
    fill_zero(values, std::size_t(view.count) * query_channels);
    for (std::size_t n = 0; n < view.drawn.size; ++n)
        std::copy_n(rows.data + n * query_row, query_channels,
                    values + std::size_t(view.drawn[n]) * query_channels);
}

}  // namespace SPLAT_ISA
}  // namespace splat
