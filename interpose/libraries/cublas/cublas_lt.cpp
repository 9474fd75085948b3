#include "interpose/libraries/cublas/cublas_lt.h"

#include <optional>

#include "interpose/libraries/cublas/cublas_matrix.h"

namespace numsan::cublas {
namespace {

/// Attributes of a layout or a description of a product.
class Attributes {
  public:
    Attributes(GetAttribute* get, void* of) : get_(get), of_(of) {}
    template <class T>
    T value(int attribute, T missing) const {
        T found = missing;
        size_t written = 0;
        const bool had = get_(of_, attribute, &found, sizeof found, &written) == kSuccess && written == sizeof found;
        return had ? found : missing;
    }
    void* pointer(int attribute) const { return value<void*>(attribute, nullptr); }

  private:
    GetAttribute* get_;
    void* of_;
};

/// None of an order that is neither by columns nor by rows, of real and imaginary parts in two planes, and of pointers
/// to matrices.
std::optional<Matrix> matrix_of(GetAttribute* get, void* layout, const void* data) {
    const Attributes of(get, layout);
    const auto order = of.value<int32_t>(kLayoutOrder, kByColumns);
    const bool planes = of.value<int64_t>(kLayoutPlaneOffset, 0) != 0;
    const bool pointers = of.value<uint32_t>(kLayoutBatchMode, 0) != 0;
    if ((order != kByColumns && order != kByRows) || planes || pointers) return std::nullopt;
    const auto rows = static_cast<int64_t>(of.value<uint64_t>(kLayoutRows, 0));
    const auto columns = static_cast<int64_t>(of.value<uint64_t>(kLayoutColumns, 0));
    Matrix matrix{data, elements_of(static_cast<int>(of.value<uint32_t>(kLayoutType, kReal32))), rows, columns,
                  of.value<int64_t>(kLayoutLeading, order == kByRows ? columns : rows)};
    matrix.count = of.value<int32_t>(kLayoutBatch, 1);
    matrix.batch_stride = of.value<int64_t>(kLayoutBatchOffset, 0);
    matrix.by_rows = order == kByRows;
    return matrix;
}

class LtEpilogue {
  public:
    LtEpilogue(LibraryCall& call, const Attributes& of, const Matrix& result, bool narrow)
        : call_(call), of_(of), result_(result), narrow_(narrow) {}

    /// What is read and written besides the matrices: a bias, what the backward pass of an activation needs.
    void add_all() const {
        const auto bits = of_.value<uint32_t>(kMatmulEpilogue, 1);
        if ((bits & kEpilogueBiasGradients) != 0)
            add_bias((bits & kEpilogueBiasGradientOfB) != 0 ? result_.columns : result_.rows, true);
        else if ((bits & kEpilogueBias) != 0)
            add_bias(result_.rows, false);
        if ((bits & kEpilogueAux) == 0) return;
        if ((bits & (kEpilogueGelu | kEpilogueGeluBackward)) == 0)
            return call_.add_other(of_.pointer(kMatmulAux));  // a mask
        const bool backward = (bits & kEpilogueGeluBackward) != 0;
        Matrix aux = result_;
        aux.data = of_.pointer(kMatmulAux);
        aux.elements = elements(kMatmulAuxType);
        aux.leading = of_.value<int64_t>(kMatmulAuxLeading, result_.leading);
        aux.batch_stride = of_.value<int64_t>(kMatmulAuxStride, 0);
        add(call_, aux, backward, !backward);
    }

  private:
    /// Of results of 8 bits the library chooses another type where none is set.
    Elements elements(int attribute) const {
        const auto type = of_.value<int32_t>(attribute, -1);
        if (type >= 0) return elements_of(type);
        return narrow_ ? Elements{} : result_.elements;
    }
    void add_bias(int64_t numbers, bool gradient) const {
        Matrix bias{of_.pointer(kMatmulBias), elements(kMatmulBiasType), numbers, 1, numbers};
        bias.batch_stride = of_.value<int64_t>(kMatmulBiasStride, 0);
        bias.count = bias.batch_stride == 0 ? 1 : result_.count;
        add(call_, bias, !gradient, gradient);
    }

    LibraryCall& call_;
    const Attributes& of_;
    const Matrix& result_;
    bool narrow_;
};

/// What values of 8 bits are multiplied by. Of blocks each has its own, in types that are not told apart here.
void add_scales(LibraryCall& call, const Attributes& of) {
    constexpr struct {
        int scale, mode;
    } kScales[] = {{kMatmulScaleOfA, kMatmulModeOfA},
                   {kMatmulScaleOfB, kMatmulModeOfB},
                   {kMatmulScaleOfC, kMatmulModeOfC},
                   {kMatmulScaleOfD, kMatmulModeOfD},
                   {kMatmulScaleOfAux, kMatmulModeOfAux}};
    for (const auto& one : kScales) {
        const void* const data = of.pointer(one.scale);
        if (data == nullptr) continue;
        const bool is_one_number = of.value<int32_t>(one.mode, 0) == 0;
        add(call, {data, is_one_number ? Elements{DType::Float32} : Elements{}, 1, 1, 1}, true, false);
    }
    for (const int largest : {kMatmulLargestOfD, kMatmulLargestOfAux, kMatmulScaleOutOfD})
        call.add_other(of.pointer(largest));
}

Factors::Place place_of(int mode) {
    return mode == kPointersOfHost     ? Factors::Place::Host
           : mode == kPointersOfDevice ? Factors::Place::Device
                                       : Factors::Place::Elsewhere;
}

bool is_narrow(const std::optional<Matrix>& matrix) {
    return matrix && matrix->elements.dtype && info(*matrix->elements.dtype).lane_bytes == 1;
}

}  // namespace

void describe(LibraryCall& call, const LtProduct& p, GetAttribute* of_layout, GetAttribute* of_matmul) noexcept {
    call.queue = DeviceQueue{p.stream, -1, true};
    call.add_other(p.workspace);
    const Attributes of(of_matmul, p.description);
    const std::optional<Matrix> a = matrix_of(of_layout, p.layout_a, p.a), b = matrix_of(of_layout, p.layout_b, p.b);
    const std::optional<Matrix> c = matrix_of(of_layout, p.layout_c, p.c), d = matrix_of(of_layout, p.layout_d, p.d);
    const Factors factors{p.alpha, p.beta, place_of(of.value<int32_t>(kMatmulPointerMode, kPointersOfHost)),
                          elements_of(of.value<int32_t>(kMatmulScaleType, kReal32)).dtype.value_or(DType::Float32)};
    const bool reads_c = !factors.has_no_beta(), in_place = p.c == p.d;
    for (const std::optional<Matrix>& operand : {a, b}) {
        if (operand)
            add(call, *operand, true, false);
        else
            call.explained = false;
    }
    factors.add_to(call);
    if (reads_c && !in_place && c) add(call, *c, true, false);
    call.explained = call.explained && (!reads_c || c.has_value());
    if (!d) {
        call.complete = false;
        return;
    }
    add(call, *d, reads_c && in_place, true);
    LtEpilogue(call, of, *d, is_narrow(a)).add_all();
    add_scales(call, of);
}

}  // namespace numsan::cublas
