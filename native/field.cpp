// SPDX-License-Identifier: Apache-2.0
// The residual field's operator: harmonics towards the camera, then the weights of linear.cpp.
#include "field.hpp"

#include <cmath>

#include "harmonics.hpp"
#include "partials.hpp"
#include "sweep.hpp"

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
    const double *R = view.camera.rotation, *t = view.camera.shift;
    double centre[3];
    for (int k = 0; k < 3; ++k) centre[k] = -(R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2]);
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

// The weights of one tile as they were met, for a second pass over them.
struct Kept {
    struct Run {
        uint8_t unit, count;  // entries met by one unit of one batch
    };
    Array<float> weights;
    Array<uint8_t> met;
    Array<Run> runs;
    Array<uint8_t> runs_of_batch;

    void reserve(const View& view, const TileGeometry& tile) {
        std::size_t room = 0;
        for (uint32_t at = tile.first; at < tile.last; ++at)
            room += __builtin_popcount(unit_bits(view.entries[at].rows));
        const std::size_t batches = (tile.last - tile.first + batch_size - 1) / batch_size;
        weights.resize(room * lanes);
        met.resize(room);
        runs.resize(batches * units);
        runs_of_batch.resize(batches);
    }
};

// plane += sum over entries of weight * value, keeping the weights.
void composite_tile(const View& view, const TileGeometry& tile, const float* values, Kept& kept,
                    float* plane) {
    TileState state;
    Batch batch;
    float local[batch_size];
    float* weights = kept.weights.data;
    uint8_t* met = kept.met.data;
    Kept::Run* run = kept.runs.data;
    uint8_t* runs = kept.runs_of_batch.data;
    for (uint32_t at = tile.first; at < tile.last; at += batch_size, ++runs) {
        const Kept::Run* first_run = run;
        if (state.open) {
            const int count = static_cast<int>(std::min<uint32_t>(batch_size, tile.last - at));
            load_batch(view, view.entries.data + at, count, tile.centre_x(), tile.centre_y(),
                       batch);
            for (int e = 0; e < count; ++e)
                local[e] = values[view.footprints[batch.entries[e].footprint].rank];
            for (uint32_t rest = state.open; rest; rest &= rest - 1) {
                const int unit = __builtin_ctz(rest);
                if (!batch.entries_of_unit[unit]) continue;
                const int n = sweep_unit(batch, unit, state.T[unit], weights, met);
                if (state.exhausted(unit)) state.open &= ~(1u << unit);
                float* pixels = plane + unit_pixel(unit);
                Vec sum = Vec::load(pixels);
                for (int k = 0; k < n; ++k)
                    sum = fma(Vec::load(weights + k * lanes), Vec::all(local[met[k]]), sum);
                sum.store(pixels);
                weights += n * lanes;
                met += n;
                *run++ = {static_cast<uint8_t>(unit), static_cast<uint8_t>(n)};
            }
        }
        *runs = static_cast<uint8_t>(run - first_run);
    }
}

// The transpose of it: one sum of weight * plane per entry, written to the partial rows.
void scatter_tile(const View& view, const TileGeometry& tile, const Kept& kept, const float* plane,
                  const Partials& partials) {
    const float* weights = kept.weights.data;
    const uint8_t* met = kept.met.data;
    const Kept::Run* run = kept.runs.data;
    const uint8_t* runs = kept.runs_of_batch.data;
    for (uint32_t at = tile.first; at < tile.last; at += batch_size, ++runs) {
        const int count = static_cast<int>(std::min<uint32_t>(batch_size, tile.last - at));
        Vec sums[batch_size];
        for (int e = 0; e < batch_size; ++e) sums[e] = Vec::all(0.0f);
        for (int r = 0; r < *runs; ++r, ++run) {
            const Vec pixels = Vec::load(plane + unit_pixel(run->unit));
            for (int k = 0; k < run->count; ++k, ++met, weights += lanes)
                sums[*met] = fma(Vec::load(weights), pixels, sums[*met]);
        }
        alignas(64) float out[batch_size];
        for (int e = 0; e < count; e += 8) sum_eight(sums + e, out + e);
        for (int e = 0; e < count; ++e) *partials.row(view.entries[at + e].emission) = out[e];
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
    const int threads = thread_count();
    Kept* kept = new Kept[threads];
    struct Owner {
        Kept* p;
        ~Owner() { delete[] p; }
    } owner{kept};
    parallel_for(
        view.tiles_x * view.tiles_y,
        [&](int index, int worker) {
            const TileGeometry tile(view, index);
            alignas(64) float plane[tile_pixels] = {};
            kept[worker].reserve(view, tile);
            composite_tile(view, tile, values.data, kept[worker], plane);
            if (request.mask || tile.rows < tile_size || tile.columns < tile_size) {
                alignas(64) float counted[tile_pixels];
                read_mask(view, tile, request.mask, counted);
                for (int p = 0; p < tile_pixels; ++p) plane[p] *= counted[p];
            }
            scatter_tile(view, tile, kept[worker], plane, partials);
        },
        threads);

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

// Sums of w, w e, w alpha and w^2 over the pixels of one tile, a row of four per entry.
void survey_tile(const View& view, const TileGeometry& tile, const SurveyRequest& request,
                 const Partials& partials) {
    alignas(64) float inside[tile_pixels], counted[tile_pixels];
    alignas(64) float residual[tile_pixels], alpha[tile_pixels];
    read_mask(view, tile, nullptr, inside);
    read_mask(view, tile, request.mask, counted);
    read_tile(view, tile, request.residual, 1, residual);
    read_tile(view, tile, request.alpha, 1, alpha);
    for (int p = 0; p < tile_pixels; ++p) {
        residual[p] *= counted[p];
        alpha[p] *= counted[p];
    }
    TileState state;
    for (uint32_t at = tile.first; at < tile.last; ++at) {
        const Entry& entry = view.entries[at];
        Vec sums[4] = {Vec::all(0.0f), Vec::all(0.0f), Vec::all(0.0f), Vec::all(0.0f)};
        sweep_entry(view, tile, entry, state, [&](int unit, Vec w) {
            const int pixel = unit_pixel(unit);
            sums[0] = fma(w, Vec::load(inside + pixel), sums[0]);
            sums[1] = fma(w, Vec::load(residual + pixel), sums[1]);
            sums[2] = fma(w, Vec::load(alpha + pixel), sums[2]);
            sums[3] = fma(w * w, Vec::load(counted + pixel), sums[3]);
        });
        float* out = partials.row(entry.emission);
        for (int c = 0; c < 4; ++c) out[c] = sum(sums[c]);
    }
}

void survey(const View& view, const SurveyRequest& request) {
    Partials partials(view, 4);
    parallel_for(view.tiles_x * view.tiles_y, [&](int index, int) {
        survey_tile(view, TileGeometry(view, index), request, partials);
    });
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
