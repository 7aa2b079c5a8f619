// SPDX-License-Identifier: Apache-2.0
// Python sees the bindings and nothing else. Shapes, dtypes, devices and contiguity are
// checked here; the kernels below trust what they get.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace splat;

namespace {

RawSplats raw_splats(const F2& means, const F2& quats, const F2& log_scales, const F1& logits) {
    const std::size_t n = means.shape(0);
    expect(means, "means", {n, 3});
    expect(quats, "quats", {n, 4});
    expect(log_scales, "log_scales", {n, 3});
    expect(logits, "logit_opacities", {n});
    if (n >= 0xffffffffu) throw std::invalid_argument("more than 2^32 Gaussians");
    return {means.data(), quats.data(), log_scales.data(), logits.data(), static_cast<int64_t>(n)};
}

int channels_of(std::size_t n) {
    if (n < 1 || n > 4096)
        throw std::invalid_argument("between 1 and 4096 channels, got " + std::to_string(n));
    return static_cast<int>(n);
}

// Three standard deviations along the longer axis, in whole pixels.
float radius_of(const Footprint& f) {
    const double xx = -f.a, yy = -f.c, xy = -0.5 * f.b;  // conic times log2(e) / 2
    const double mean = 0.5 * (xx + yy);
    const double least = mean - std::sqrt(std::max(0.0, mean * mean - (xx * yy - xy * xy)));
    return static_cast<float>(std::ceil(3 * std::sqrt(0.5 * log2_e / least)));
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

class PreparedView {
public:
    PreparedView(const F2& means, const F2& quats, const F2& log_scales, const F1& logits,
                 const D2& world_to_camera, double fx, double fy, double cx, double cy, int width,
                 int height, bool antialiased, uint64_t entry_limit) {
        const RawSplats splats = raw_splats(means, quats, log_scales, logits);
        if (width < 1 || height < 1 || width > 65536 || height > 65536)
            throw std::invalid_argument("image sides must be 1 to 65536 pixels, got " +
                                        std::to_string(width) + " x " + std::to_string(height));
        if (!(fx > 0 && fy > 0 && std::isfinite(fx + fy + cx + cy)))
            throw std::invalid_argument("focal lengths must be positive, intrinsics finite");
        CameraModel& camera = view_.camera;
        for (int i = 0; i < 3; ++i) {
            for (int k = 0; k < 3; ++k) camera.rotation[3 * i + k] = world_to_camera(i, k);
            camera.shift[i] = world_to_camera(i, 3);
        }
        camera.fx = fx, camera.fy = fy, camera.cx = cx, camera.cy = cy;
        camera.width = width, camera.height = height, camera.antialiased = antialiased;
        view_.entry_limit = std::min(entry_limit, view_.entry_limit);
        nb::gil_scoped_release release;
        kernels().prepare(view_, splats);
    }

    void composite(const F2& values, const Out3& image) const {
        const int channels = channels_of(values.shape(1));
        expect(values, "values", {size(), values.shape(1)});
        expect(image, "image", {height(), width(), values.shape(1)});
        nb::gil_scoped_release release;
        kernels().composite(view_, values.data(), channels, image.data());
    }
    void scatter(const F3& image, const Out2& values) const {
        const int channels = channels_of(image.shape(2));
        expect(image, "image", {height(), width(), image.shape(2)});
        expect(values, "values", {size(), image.shape(2)});
        nb::gil_scoped_release release;
        kernels().scatter(view_, image.data(), channels, values.data());
    }
    void normal(const F2& values, const Out2& result) const {
        const int channels = channels_of(values.shape(1));
        expect(values, "values", {size(), values.shape(1)});
        expect(result, "result", {size(), values.shape(1)});
        nb::gil_scoped_release release;
        kernels().normal(view_, values.data(), channels, result.data());
    }
    void count(const B2& mask, const Out1& counts) const {
        expect(mask, "mask", {height(), width()});
        expect(counts, "counts", {size()});
        nb::gil_scoped_release release;
        kernels().count(view_, mask.data(), counts.data());
    }
    void footprint(const Out1& sums) const {
        expect(sums, "sums", {size()});
        nb::gil_scoped_release release;
        kernels().footprint(view_, sums.data());
    }
    nb::tuple contributors(const I2& pixels) const {
        expect(pixels, "pixels", {pixels.shape(0), 2});
        std::vector<int64_t> offsets{0}, gaussians;
        std::vector<float> weights;
        std::vector<uint32_t> ids(4096);
        std::vector<float> w(4096);
        for (std::size_t k = 0; k < pixels.shape(0); ++k) {
            const int row = pixels(k, 0), column = pixels(k, 1);
            if (row < 0 || column < 0 || row >= view_.camera.height || column >= view_.camera.width)
                throw std::invalid_argument("pixel " + std::to_string(k) +
                                            " lies outside the image");
            int64_t n =
                kernels().contributors(view_, row, column, ids.data(), w.data(), ids.size());
            if (n > static_cast<int64_t>(ids.size())) {
                ids.resize(n);
                w.resize(n);
                n = kernels().contributors(view_, row, column, ids.data(), w.data(), ids.size());
            }
            gaussians.insert(gaussians.end(), ids.begin(), ids.begin() + n);
            weights.insert(weights.end(), w.begin(), w.begin() + n);
            offsets.push_back(static_cast<int64_t>(gaussians.size()));
        }
        return nb::make_tuple(owned(offsets), owned(gaussians), owned(weights));
    }
    void backward(const F2& means, const F2& quats, const F2& log_scales, const F1& logits,
                  const F2& values, const F3& image, const F3& grad_image, const Out2& grad_values,
                  const Out2& grad_means, const Out2& grad_quats, const Out2& grad_log_scales,
                  const Out1& grad_logits, const Out2& grad_means2d,
                  const std::optional<Out2>& abs_grad_means2d) const {
        const RawSplats splats = raw_splats(means, quats, log_scales, logits);
        const std::size_t n = size(), d = values.shape(1);
        expect(means, "means", {n, 3});
        expect(values, "values", {n, d});
        expect(image, "image", {height(), width(), d});
        expect(grad_image, "grad_image", {height(), width(), d});
        expect(grad_values, "grad_values", {n, d});
        expect(grad_means, "grad_means", {n, 3});
        expect(grad_quats, "grad_quats", {n, 4});
        expect(grad_log_scales, "grad_log_scales", {n, 3});
        expect(grad_logits, "grad_logit_opacities", {n});
        expect(grad_means2d, "grad_means2d", {n, 2});
        if (abs_grad_means2d) expect(*abs_grad_means2d, "abs_grad_means2d", {n, 2});
        const ViewGradients request = {values.data(),
                                       image.data(),
                                       grad_image.data(),
                                       channels_of(d),
                                       grad_values.data(),
                                       grad_means.data(),
                                       grad_quats.data(),
                                       grad_log_scales.data(),
                                       grad_logits.data(),
                                       grad_means2d.data(),
                                       abs_grad_means2d ? abs_grad_means2d->data() : nullptr};
        nb::gil_scoped_release release;
        kernels().backward(view_, splats, request);
    }
    void shade(const F2& means, const F3& sh, int degree, const Out2& colours) const {
        const Harmonics h(sh, size(), degree);
        expect(means, "means", {size(), 3});
        expect(colours, "colours", {size(), 3});
        nb::gil_scoped_release release;
        kernels().shade(view_, means.data(), sh.data(), h.bases, h.active, colours.data());
    }
    void shade_backward(const F2& means, const F3& sh, int degree, const F2& grad_colours,
                        bool accumulate, const Out2& grad_means, const Out3& grad_sh) const {
        const Harmonics h(sh, size(), degree);
        expect(means, "means", {size(), 3});
        expect(grad_colours, "grad_colours", {size(), 3});
        expect(grad_means, "grad_means", {size(), 3});
        expect(grad_sh, "grad_sh", {size(), sh.shape(1), 3});
        nb::gil_scoped_release release;
        kernels().shade_backward(view_, means.data(), sh.data(), h.bases, h.active,
                                 grad_colours.data(), accumulate, grad_means.data(),
                                 grad_sh.data());
    }
    void depths(const Out1& out) const {
        expect(out, "out", {size()});
        std::fill_n(out.data(), size(), 0.0f);
        for (std::size_t k = 0; k < view_.footprints.size; ++k)
            out.data()[view_.footprints[k].gaussian] = view_.footprints[k].depth;
    }
    // What density control wants to know of the Gaussians this view draws, added to its sums:
    // lengths of gradients in units of half the image, views that drew it, largest radius.
    void tally(const F2& grad_means2d, const F2& abs_grad_means2d, const Out1& gradient,
               const Out1& absolute, const Out1& seen, const Out1& radius) const {
        expect(grad_means2d, "grad_means2d", {size(), 2});
        expect(abs_grad_means2d, "abs_grad_means2d", {size(), 2});
        for (const Out1* sums : {&gradient, &absolute, &seen, &radius})
            expect(*sums, "sums", {size()});
        const float half_width = 0.5f * view_.camera.width,
                    half_height = 0.5f * view_.camera.height;
        const auto length = [&](const F2& grads, std::size_t at) {
            const float x = grads.data()[2 * at] * half_width;
            const float y = grads.data()[2 * at + 1] * half_height;
            return std::sqrt(x * x + y * y);
        };
        nb::gil_scoped_release release;
        const std::size_t chunk = 4096, count = view_.footprints.size;
        parallel_for(static_cast<int>((count + chunk - 1) / chunk), [&](int block, int) {
            const std::size_t end = std::min(count, (block + 1) * chunk);
            for (std::size_t k = block * chunk; k < end; ++k) {
                const Footprint& f = view_.footprints[k];
                gradient.data()[f.gaussian] += length(grad_means2d, f.gaussian);
                absolute.data()[f.gaussian] += length(abs_grad_means2d, f.gaussian);
                seen.data()[f.gaussian] += 1;
                float& largest = radius.data()[f.gaussian];
                largest = std::max(largest, radius_of(f));
            }
        });
    }
    auto drawn() const {
        return owned(std::vector<int64_t>(view_.drawn.data, view_.drawn.data + view_.drawn.size));
    }
    std::size_t entries() const { return view_.entries.size; }
    std::size_t bytes() const {
        return view_.footprints.size * sizeof(Footprint) + view_.entries.size * sizeof(Entry) +
               4 * (view_.drawn.size + view_.tile_start.size + view_.emission_start.size);
    }
    // Work in the tile lists: (half rows listed, pixels listed as whole tiles).
    std::pair<std::size_t, std::size_t> pairs() const {
        std::size_t rows = 0;
        for (std::size_t k = 0; k < view_.entries.size; ++k)
            rows += __builtin_popcount(view_.entries[k].rows);
        return {rows * half_width, view_.entries.size * tile_pixels};
    }

    const View& view() const { return view_; }

private:
    template <class T>
    static nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(const std::vector<T>& values) {
        T* data = new T[values.size() + 1];
        std::copy(values.begin(), values.end(), data);
        nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return {data, {values.size()}, owner};
    }
    std::size_t size() const { return static_cast<std::size_t>(view_.count); }
    std::size_t width() const { return static_cast<std::size_t>(view_.camera.width); }
    std::size_t height() const { return static_cast<std::size_t>(view_.camera.height); }

    View view_;
};

// A float32 tensor in memory that goes back to the kernels' own store when it is dropped:
// large results are then written to pages that are already there.
nb::ndarray<nb::pytorch, float, nb::device::cpu, nb::c_contig> empty(
    const std::vector<std::size_t>& shape) {
    std::size_t count = 1;
    for (std::size_t n : shape) {
        if (n && count > (std::size_t(1) << 58) / n) throw std::bad_alloc();
        count *= n;
    }
    void* data = aligned_new(count * sizeof(float));
    nb::capsule owner(data, [](void* p) noexcept { aligned_delete(p); });
    return {data, shape.size(), shape.data(), owner};
}

nb::tuple loss(const F3& image, const F3& target, double weight_l1, double weight_ssim,
               const std::optional<B2>& mask, bool valid_only, const std::optional<Out3>& grad) {
    const std::size_t h = image.shape(0), w = image.shape(1), c = image.shape(2);
    expect(target, "target", {h, w, c});
    if (mask) expect(*mask, "mask", {h, w});
    if (grad) expect(*grad, "grad", {h, w, c});
    if (h < 1 || w < 1 || h > 65536 || w > 65536)
        throw std::invalid_argument("image sides must be 1 to 65536 pixels");
    LossRequest request = {image.data(),
                           target.data(),
                           mask ? mask->data() : nullptr,
                           static_cast<int>(h),
                           static_cast<int>(w),
                           channels_of(c),
                           weight_l1,
                           weight_ssim,
                           valid_only,
                           grad ? grad->data() : nullptr,
                           0,
                           0};
    {
        nb::gil_scoped_release release;
        kernels().loss(request);
    }
    return nb::make_tuple(request.l1, request.ssim);
}

void adam(const Out2& parameter, const Out2& grad, const Out2& first, const Out2& second,
          double rate, double beta1, double beta2, double epsilon, int64_t step,
          const std::optional<B1>& rows, std::pair<int, int> columns, bool clear) {
    const std::size_t n = parameter.shape(0), c = parameter.shape(1);
    expect(grad, "grad", {n, c});
    expect(first, "first", {n, c});
    expect(second, "second", {n, c});
    if (rows) expect(*rows, "rows", {n});
    if (columns.first < 0 || columns.first > columns.second || columns.second > static_cast<int>(c))
        throw std::invalid_argument("columns must lie within the table");
    if (step < 1) throw std::invalid_argument("step counts from 1, got " + std::to_string(step));
    const AdamRequest request = {parameter.data(),
                                 first.data(),
                                 second.data(),
                                 grad.data(),
                                 rows ? rows->data() : nullptr,
                                 clear,
                                 static_cast<int64_t>(n),
                                 channels_of(c),
                                 columns.first,
                                 columns.second,
                                 rate,
                                 beta1,
                                 beta2,
                                 epsilon,
                                 1 - std::pow(beta1, double(step)),
                                 1 - std::pow(beta2, double(step))};
    nb::gil_scoped_release release;
    kernels().adam(request);
}

}  // namespace

const View& prepared_view(nb::handle object) { return nb::cast<PreparedView&>(object).view(); }

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // autograd graphs may outlive the interpreter's last breath
    m.doc() = "Native kernels of splatcert's CPU renderer";
    m.def("threads", [] { return thread_count(); });
    m.def("keep_to_this_thread", &keep_to_this_thread);
    m.def("set_threads", [](int n) {
        nb::gil_scoped_release release;
        set_thread_count(n);
    });
    m.def("isa", [] { return std::string(kernels().name); });
    m.def("available_isas", [] {
        std::vector<std::string> names;
        for (const Kernels* k : available_kernels()) names.emplace_back(k->name);
        return names;
    });
    m.def("set_isa", [](const std::string& name) {
        if (!choose_kernels(name))
            throw std::invalid_argument("this machine cannot run '" + name + "'");
    });
    m.def("constants", [] {
        nb::dict d;
        d["alpha_cap"] = alpha_cap;
        d["alpha_floor"] = alpha_floor;
        d["stop_transmittance"] = stop_transmittance;
        d["low_pass"] = low_pass;
        d["near_plane"] = near_plane;
        d["fov_margin"] = fov_margin;
        d["compensation_floor"] = compensation_floor;
        return d;
    });
    m.def("empty", &empty, nb::arg("shape"));
    m.def("loss", &loss, nb::arg("image"), nb::arg("target"), nb::arg("weight_l1"),
          nb::arg("weight_ssim"), nb::arg("mask").none(), nb::arg("valid_only"),
          nb::arg("grad").none());
    m.def("adam", &adam, nb::arg("parameter"), nb::arg("grad"), nb::arg("first"), nb::arg("second"),
          nb::arg("rate"), nb::arg("beta1"), nb::arg("beta2"), nb::arg("epsilon"), nb::arg("step"),
          nb::arg("rows").none(), nb::arg("columns"), nb::arg("clear"));
    nb::exception<TooManyEntries>(m, "TooManyEntries", PyExc_ValueError);
    nb::class_<PreparedView>(m, "PreparedView")
        .def(nb::init<const F2&, const F2&, const F2&, const F1&, const D2&, double, double, double,
                      double, int, int, bool, uint64_t>())
        .def("composite", &PreparedView::composite)
        .def("scatter", &PreparedView::scatter)
        .def("normal", &PreparedView::normal)
        .def("count", &PreparedView::count)
        .def("footprint", &PreparedView::footprint)
        .def("contributors", &PreparedView::contributors)
        .def("backward", &PreparedView::backward, nb::arg("means"), nb::arg("quats"),
             nb::arg("log_scales"), nb::arg("logit_opacities"), nb::arg("values"), nb::arg("image"),
             nb::arg("grad_image"), nb::arg("grad_values"), nb::arg("grad_means"),
             nb::arg("grad_quats"), nb::arg("grad_log_scales"), nb::arg("grad_logit_opacities"),
             nb::arg("grad_means2d"), nb::arg("abs_grad_means2d").none())
        .def("shade", &PreparedView::shade)
        .def("shade_backward", &PreparedView::shade_backward)
        .def("depths", &PreparedView::depths)
        .def("tally", &PreparedView::tally)
        .def("drawn", &PreparedView::drawn)
        .def_prop_ro("entries", &PreparedView::entries)
        .def_prop_ro("bytes", &PreparedView::bytes)
        .def_prop_ro("pairs", &PreparedView::pairs);
    bind_field(m);
    bind_query(m);
    bind_witnesses(m);
}
