// SPDX-License-Identifier: Apache-2.0
// The residual field's operator: harmonics towards the camera, then the weights of linear.cpp.
#include "field.hpp"

#include <cmath>

#include "harmonics.hpp"
#include "kept.hpp"

namespace splat {
namespace SPLAT_ISA {
namespace {

// Calls f with the degree as a compile-time constant; `bases` is its square number.
template <class F>
inline void with_degree(int bases, F&& f) {
    switch (bases) {
        case 1: return f(std::integral_constant<int, 0>());
        case 4: return f(std::integral_constant<int, 1>());
        case 9: return f(std::integral_constant<int, 2>());
        default: return f(std::integral_constant<int, 3>());
    }
}

// Several Gaussians' harmonics at once, by the recurrence of splats/harmonics.py.
template <int Degree>
inline void harmonics(Vec x, Vec y, Vec z, Vec* out) {
    Vec re = Vec::all(1.0f), im = Vec::all(0.0f);
    float leading = 1.0f;
    for (int m = 0; m <= Degree; ++m) {
        Vec below = Vec::all(0.0f), current = Vec::all(leading);
        for (int l = m; l <= Degree; ++l) {
            const Vec height = Vec::all(harmonic_norm[l][m]) * current;
            out[l * l + l + m] = height * re;
            if (m) out[l * l + l - m] = height * im;
            const Vec rise =
                fnma(Vec::all(float(l + m)), below, Vec::all(float(2 * l + 1)) * z * current);
            below = current;
            current = rise * Vec::all(1.0f / (l + 1 - m));
        }
        const Vec turned = fnma(y, im, x * re);
        im = fma(x, im, y * re);
        re = turned;
        leading *= 2 * m + 1;
    }
}

// A vector of drawn Gaussians, unit directions from them to the camera, and their harmonics.
template <int Degree>
struct Directed {
    static constexpr int bases = (Degree + 1) * (Degree + 1);
    int count;
    int64_t gaussian[lanes];
    alignas(64) float direction[3][lanes];
    alignas(64) float phi[bases][lanes];

    // Lanes from `count` on repeat the last Gaussian and are ignored.
    Directed(const View& view, const double centre[3], const float* means, int first, int end) {
        count = std::min(lanes, end - first);
        for (int k = 0; k < lanes; ++k) {
            gaussian[k] = view.drawn[first + std::min(k, count - 1)];
            const float* mean = means + 3 * gaussian[k];
            for (int c = 0; c < 3; ++c) direction[c][k] = float(centre[c] - mean[c]);
        }
        const Vec x = Vec::load(direction[0]), y = Vec::load(direction[1]),
                  z = Vec::load(direction[2]);
        const Vec shrink = Vec::all(1.0f) / sqrt(fma(x, x, fma(y, y, z * z)));
        (x * shrink).store(direction[0]);
        (y * shrink).store(direction[1]);
        (z * shrink).store(direction[2]);
        Vec out[bases];
        harmonics<Degree>(x * shrink, y * shrink, z * shrink, out);
        for (int b = 0; b < bases; ++b) out[b].store(phi[b]);
    }
};

template <int Degree, class F>
inline void for_directed(const View& view, const float* means, F&& body) {
    double centre[3];
    camera_centre(view.camera, centre);
    for_drawn_ranges(view, [&](int begin, int end) {
        for (int first = begin; first < end; first += lanes)
            body(first, Directed<Degree>(view, centre, means, first, end));
    });
}

// c . phi(d) of the drawn Gaussians, handed to put(rank, gaussian, value).
template <class Put>
void contract(const View& view, const float* means, const float* coefficients, int bases,
              Put&& put) {
    with_degree(bases, [&](auto degree) {
        for_directed<degree.value>(view, means, [&](int first, const auto& d) {
            constexpr int K = (degree.value + 1) * (degree.value + 1);
            alignas(64) float c[K][lanes];
            for (int k = 0; k < lanes; ++k)
                for (int b = 0; b < K; ++b) c[b][k] = coefficients[d.gaussian[k] * K + b];
            Vec sum = Vec::all(0.0f);
            for (int b = 0; b < K; ++b) sum = fma(Vec::load(c[b]), Vec::load(d.phi[b]), sum);
            alignas(64) float value[lanes];
            sum.store(value);
            for (int k = 0; k < d.count; ++k) put(first + k, d.gaussian[k], value[k]);
        });
    });
}

// One where a pixel of the tile counts, zero where it does not or lies outside the image.
void read_mask(const View& view, const TileGeometry& tile, const uint8_t* mask, float* plane) {
    for (int row = 0; row < tile_size; ++row)
        for (int column = 0; column < tile_size; ++column) {
            const bool inside = row < tile.rows && column < tile.columns;
            const std::size_t at = std::size_t(tile.y + row) * view.camera.width + tile.x + column;
            plane[row * tile_size + column] = inside && (!mask || mask[at]) ? 1.0f : 0.0f;
        }
}

// Rows of a drawn Gaussian added up in their order.
template <int Width>
inline void add_rows(const View& view, const Partials& partials, int rank, float* sums) {
    for (int c = 0; c < Width; ++c) sums[c] = 0.0f;
    for (uint32_t n = view.emission_start[rank]; n < view.emission_start[rank + 1]; ++n)
        for (int c = 0; c < Width; ++c) sums[c] += partials.row(n)[c];
}

void field_values(const View& view, const float* means, const float* coefficients, int bases,
                  float* values) {
    fill_zero(values, std::size_t(view.count));
    contract(view, means, coefficients, bases,
             [&](int, int64_t gaussian, float value) { values[gaussian] = value; });
}

void field_normal(const View& view, const FieldNormalRequest& request) {
    Array<float> values;
    values.resize(view.drawn.size);
    contract(view, request.means, request.coefficients, request.bases,
             [&](int rank, int64_t, float value) { values[rank] = value; });

    Partials partials(view, 1);
    for_kept_tiles(view, [&](const TileGeometry& tile, Kept& kept) {
        alignas(64) float plane[tile_pixels] = {};
        composite_tile<1>(
            view, tile, [&](const Footprint& f, float* value) { *value = values[f.rank]; }, kept,
            plane);
        if (request.mask || tile.rows < tile_size || tile.columns < tile_size) {
            alignas(64) float counted[tile_pixels];
            read_mask(view, tile, request.mask, counted);
            for (int p = 0; p < tile_pixels; ++p) plane[p] *= counted[p];
        }
        scatter_tile<1>(
            view, tile, kept, [&](int pixel) { return Vec::load(plane + pixel); },
            [](Vec w, Vec held, Vec* sum) { *sum = fma(w, held, *sum); }, partials);
    });

    with_degree(request.bases, [&](auto degree) {
        for_directed<degree.value>(view, request.means, [&](int first, const auto& d) {
            constexpr int K = (degree.value + 1) * (degree.value + 1);
            for (int k = 0; k < d.count; ++k) {
                float sum;
                add_rows<1>(view, partials, first + k, &sum);
                double* out = request.result + d.gaussian[k] * K;
                for (int b = 0; b < K; ++b) out[b] += double(sum * d.phi[b][k]);
            }
        });
    });
}

// What the pixels of one tile turned out to be; all zero outside the image, and all but
// `inside` where a pixel does not count.
struct TileErrors {
    alignas(64) float inside[tile_pixels], counted[tile_pixels];
    alignas(64) float residual[tile_pixels], alpha[tile_pixels];
    double energy[4] = {};

    // From rendered planes of red, green, blue and alpha.
    TileErrors(const View& view, const TileGeometry& tile, const SurveyRequest& request,
               const float* planes) {
        alignas(64) float photo[3 * tile_pixels];
        read_tile(view, tile, request.photo, 3, photo);
        read_mask(view, tile, nullptr, inside);
        read_mask(view, tile, request.mask, counted);
        alignas(64) float squared[tile_pixels];
        for (int p = 0; p < tile_pixels; ++p) {
            const float opacity = planes[3 * tile_pixels + p];
            float largest = 0, sum = 0;
            for (int c = 0; c < 3; ++c) {
                const float shown =
                    planes[c * tile_pixels + p] + (1 - opacity) * request.background[c];
                const float error =
                    std::min(1.0f, std::max(0.0f, shown)) - photo[c * tile_pixels + p];
                largest = std::max(largest, std::fabs(error));
                sum += error * error;
            }
            residual[p] = largest * counted[p];
            alpha[p] = opacity * counted[p];
            squared[p] = sum * counted[p];
        }
        for (int p = 0; p < tile_pixels; ++p) {
            energy[0] += double(squared[p]);
            energy[1] += double(residual[p]) * double(residual[p]);
            energy[2] += double(residual[p]) * double(alpha[p]);
            energy[3] += double(alpha[p]) * double(alpha[p]);
        }
    }
    void count(int bins, uint32_t* histogram) const {
        for (int p = 0; p < tile_pixels; ++p)
            if (counted[p] > 0)
                ++histogram[std::min(bins - 1, static_cast<int>(residual[p] * float(bins)))];
    }
};

// Sums of w, w e, w alpha and w^2, a partial row of four per entry; and the pixels' own sums.
void survey_tiles(const View& view, const SurveyRequest& request, const Partials& partials) {
    const int tiles = view.tiles_x * view.tiles_y;
    Workers workers;
    Array<uint32_t> counts;
    counts.resize(std::size_t(workers.threads) * request.bins);
    std::memset(counts.data, 0, counts.size * sizeof(uint32_t));
    Array<double> energy;
    energy.resize(std::size_t(tiles) * 4);
    parallel_for(
        tiles,
        [&](int index, int worker) {
            const TileGeometry tile(view, index);
            Kept& kept = workers.kept[worker];
            alignas(64) float planes[4 * tile_pixels] = {};
            composite_tile<4>(
                view, tile,
                [&](const Footprint& f, float* value) {
                    std::memcpy(value, request.colours + std::size_t(f.gaussian) * 3,
                                3 * sizeof(float));
                    value[3] = 1.0f;
                },
                kept, planes);
            const TileErrors errors(view, tile, request, planes);
            std::memcpy(energy.data + 4 * index, errors.energy, sizeof(errors.energy));
            errors.count(request.bins, counts.data + std::size_t(worker) * request.bins);
            struct Held {
                Vec inside, residual, alpha, counted;
            };
            scatter_tile<4>(
                view, tile, kept,
                [&](int pixel) {
                    return Held{Vec::load(errors.inside + pixel),
                                Vec::load(errors.residual + pixel), Vec::load(errors.alpha + pixel),
                                Vec::load(errors.counted + pixel)};
                },
                [](Vec w, const Held& held, Vec* sums) {
                    sums[0] = fma(w, held.inside, sums[0]);
                    sums[1] = fma(w, held.residual, sums[1]);
                    sums[2] = fma(w, held.alpha, sums[2]);
                    sums[3] = fma(w * w, held.counted, sums[3]);
                },
                partials);
        },
        workers.threads);
    for (int index = 0; index < tiles; ++index)
        for (int k = 0; k < 4; ++k) request.energy[k] += energy[4 * index + k];
    for (std::size_t k = 0; k < counts.size; ++k) request.histogram[k % request.bins] += counts[k];
}

void survey(const View& view, const SurveyRequest& request) {
    Partials partials(view, 4);
    survey_tiles(view, request, partials);
    with_degree(request.bases, [&](auto degree) {
        for_directed<degree.value>(view, request.means, [&](int first, const auto& d) {
            constexpr int K = (degree.value + 1) * (degree.value + 1);
            for (int k = 0; k < d.count; ++k) {
                float sums[4];
                add_rows<4>(view, partials, first + k, sums);
                float* support = request.support + d.gaussian[k] * 5;
                double* moments = request.moments + d.gaussian[k] * 2 * K;
                float* block = request.blocks + d.gaussian[k] * (K * (K + 1) / 2);
                support[0] += sums[0];
                for (int c = 0; c < 3; ++c) support[1 + c] += sums[0] * d.direction[c][k];
                support[4] += sums[1];
                for (int b = 0; b < K; ++b) {
                    const float phi = d.phi[b][k];
                    moments[b] += double(sums[1] * phi);
                    moments[K + b] += double(sums[2] * phi);
                    for (int a = 0; a <= b; ++a) *block++ += sums[2] * phi * d.phi[a][k];
                }
                request.squares[d.gaussian[k]] += double(sums[3]);
            }
        });
    });
}

}  // namespace

const FieldKernels field_kernels = {survey, field_normal, field_values};

}  // namespace SPLAT_ISA
}  // namespace splat
