#include "tests/fakes/cufft/transform.h"

#include <cuda.h>

#include <cmath>
#include <complex>
#include <vector>

namespace fake_cufft {
namespace {

using Number = std::complex<double>;

/// The indices of a place among `n`, the last one fastest.
struct Place {
    Place(const Transform& t, int64_t flat) {
        for (int d = t.rank - 1; d >= 0; --d) {
            at[d] = flat % t.n[d];
            flat /= t.n[d];
        }
    }
    int64_t offset(const Transform& t, const Side& side) const {
        int64_t all = 0;
        for (int d = 0; d < t.rank; ++d) all += at[d] * side.strides[d];
        return all;
    }
    int64_t at[3] = {};
};

template <class Real>
Number read(const void* memory, bool real, int64_t index) {
    const auto* numbers = static_cast<const Real*>(memory);
    if (real) return {static_cast<double>(numbers[index]), 0};
    return {static_cast<double>(numbers[2 * index]), static_cast<double>(numbers[2 * index + 1])};
}

template <class Real>
void write(void* memory, bool real, int64_t index, Number value) {
    auto* numbers = static_cast<Real*>(memory);
    numbers[real ? index : 2 * index] = static_cast<Real>(value.real());
    if (!real) numbers[2 * index + 1] = static_cast<Real>(value.imag());
}

/// Of the half that is not there the mirror image is.
template <class Real>
Number operand(const Transform& t, int64_t one, int64_t flat) {
    Place place(t, flat);
    const int last = t.rank - 1;
    const bool mirrored = t.out.real && place.at[last] > t.n[last] / 2;
    for (int d = 0; mirrored && d < t.rank; ++d) place.at[d] = (t.n[d] - place.at[d]) % t.n[d];
    const Number value = read<Real>(t.from, t.in.real, one * t.in.distance + place.offset(t, t.in));
    return mirrored ? std::conj(value) : value;
}

template <class Real>
void compute_as(const Transform& t) {
    const int64_t all = t.n[0] * t.n[1] * t.n[2];
    const int last = t.rank - 1;
    for (int64_t one = 0; one < t.batch; ++one) {
        std::vector<Number> operands, results;
        for (int64_t i = 0; i < all; ++i) operands.push_back(operand<Real>(t, one, i));
        for (int64_t k = 0; k < all; ++k) {
            const Place to(t, k);
            Number sum = 0;
            for (int64_t i = 0; i < all; ++i) {
                const Place from(t, i);
                double turns = 0;
                for (int d = 0; d < t.rank; ++d)
                    turns += static_cast<double>(to.at[d] * from.at[d]) / static_cast<double>(t.n[d]);
                const double angle = static_cast<double>(t.direction) * 2 * M_PI * turns;
                const double c = std::cos(angle), s = std::sin(angle);
                const Number x = operands[static_cast<size_t>(i)];
                sum += Number(x.real() * c - x.imag() * s, x.real() * s + x.imag() * c);
            }
            results.push_back(sum);
        }
        for (int64_t k = 0; k < all; ++k) {
            const Place to(t, k);
            if (t.in.real && to.at[last] > t.n[last] / 2) continue;
            write<Real>(t.to, t.out.real, one * t.out.distance + to.offset(t, t.out), results[static_cast<size_t>(k)]);
        }
    }
}

}  // namespace

void Transform::compute() const { doubles ? compute_as<double>(*this) : compute_as<float>(*this); }

cufftResult Transform::launch(void* stream) const {
    // Found once: no module may be loaded while a stream is captured.
    static const CUfunction kernel = [] {
        CUmodule module;
        CUfunction found = nullptr;
        if (cuModuleLoadData(&module, "host functions") == CUDA_SUCCESS)
            cuModuleGetFunction(&found, module, "fake_cufft_transform");
        return found;
    }();
    if (kernel == nullptr) return CUFFT_INTERNAL_ERROR;
    Transform copy = *this;
    void* arguments[] = {&copy};
    const CUresult launched =
        cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, static_cast<CUstream>(stream), arguments, nullptr);
    return launched == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

}  // namespace fake_cufft

// A kernel of the fake driver's. Its name says nothing of what it is given, as cuFFT's.
extern "C" {
__attribute__((visibility("default"))) extern const int fake_cufft_transform_sizes[] = {sizeof(fake_cufft::Transform),
                                                                                        0};
__attribute__((visibility("default"))) void fake_cufft_transform(void** arguments) {
    static_cast<const fake_cufft::Transform*>(arguments[0])->compute();
}
}
