#include "interpose/libraries/cublas_calls.h"

#include <dlfcn.h>

#include <atomic>
#include <iterator>
#include <optional>

#include "interpose/libraries/cublas_abi.h"
#include "interpose/libraries/cublas_matrix.h"
#include "interpose/libraries/listened_call.h"

namespace numsan::cublas {
namespace {

enum Id : int {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) k_##function,
#include "interpose/libraries/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
    kIdCount
};

constexpr const char* kShown[] = {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) #shown,
#include "interpose/libraries/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
};

void* theirs[kIdCount];  // each is set before ours is called

template <class Function>
Function* original(int id) {
    return reinterpret_cast<Function*>(__atomic_load_n(&theirs[id], __ATOMIC_ACQUIRE));
}

/// A function of the library's that ours ask, found once. [MT]
template <class Function>
class Asked {
  public:
    explicit constexpr Asked(const char* name) : name_(name) {}

    /// Of the library that has function `id`; null: it has none of that name.
    Function* in_library_of(int id) noexcept {
        void* found = found_.load(std::memory_order_acquire);
        Dl_info info;
        if (found == nullptr && dladdr(reinterpret_cast<void*>(original<void()>(id)), &info) != 0) {
            if (void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
                found = dlsym(library, name_);
                dlclose(library);
                found_.store(found, std::memory_order_release);
            }
        }
        return reinterpret_cast<Function*>(found);
    }

  private:
    const char* name_;
    std::atomic<void*> found_{nullptr};
};

Asked<GetStream> get_stream("cublasGetStream_v2");
Asked<GetPointerMode> get_pointer_mode("cublasGetPointerMode_v2");
Asked<GetAttribute> get_of_layout("cublasLtMatrixLayoutGetAttribute");
Asked<GetAttribute> get_of_matmul("cublasLtMatmulDescGetAttribute");

/// What all forms of a product say of it.
struct Product {
    void* handle;
    int trans_a, trans_b;
    int64_t m, n, k;
    const void *alpha, *a, *b, *beta, *c;
    std::optional<DType> type_a, type_b, type_c;
    int64_t lda, ldb, ldc;
    int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
    DType factor;
};

/// False: what it is given cannot be found out.
bool describe(LibraryCall& call, int id, const Product& p) {
    void* stream = nullptr;
    int mode = kPointersOfHost;
    GetStream* const stream_of = get_stream.in_library_of(id);
    GetPointerMode* const get_mode = get_pointer_mode.in_library_of(id);
    if (stream_of == nullptr || stream_of(p.handle, &stream) != kSuccess) return false;
    const bool of_host = get_mode != nullptr && get_mode(p.handle, &mode) == kSuccess && mode == kPointersOfHost;
    call.name = kShown[id];
    call.queue = DeviceQueue{stream, -1, true};
    const bool plain_a = p.trans_a == kNoTranspose, plain_b = p.trans_b == kNoTranspose;
    add(call, {p.a, p.type_a, plain_a ? p.m : p.k, plain_a ? p.k : p.m, p.lda, p.batch, p.stride_a}, true, false);
    add(call, {p.b, p.type_b, plain_b ? p.k : p.n, plain_b ? p.n : p.k, p.ldb, p.batch, p.stride_b}, true, false);
    const Factors factors{p.alpha, p.beta, of_host, p.factor};
    factors.add_to(call);
    add(call, {p.c, p.type_c, p.m, p.n, p.ldc, p.batch, p.stride_c}, !factors.has_no_beta(), true);
    return true;
}

// ---- forms of calls: theirs are called with what ours are given

template <int id, class Int, DType dtype>
int gemm(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a, Int lda,
         const void* b, Int ldb, const void* beta, void* c, Int ldc) {
    const auto make = [&] {
        return original<Gemm<Int>>(id)(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    };
    ListenedCall listened;
    const Product product{handle, trans_a, trans_b, m,   n,   k,   alpha, a, b, beta, c,
                          dtype,  dtype,   dtype,   lda, ldb, ldc, 1,     0, 0, 0,    dtype};
    return listened && describe(listened.call, id, product) ? listened.make(make) : make();
}

template <int id, class Int, DType>
int gemm_ex(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a, int type_a,
            Int lda, const void* b, int type_b, Int ldb, const void* beta, void* c, int type_c, Int ldc, int compute,
            int algorithm) {
    const auto make = [&] {
        return original<GemmEx<Int>>(id)(handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta,
                                         c, type_c, ldc, compute, algorithm);
    };
    ListenedCall listened;
    const std::optional<DType> result = dtype_of(type_c);
    const Product product{handle,
                          trans_a,
                          trans_b,
                          m,
                          n,
                          k,
                          alpha,
                          a,
                          b,
                          beta,
                          c,
                          dtype_of(type_a),
                          dtype_of(type_b),
                          result,
                          lda,
                          ldb,
                          ldc,
                          1,
                          0,
                          0,
                          0,
                          factor_type(compute, result.value_or(DType::Float32))};
    return listened && describe(listened.call, id, product) ? listened.make(make) : make();
}

template <int id, class Int, DType dtype>
int gemm_batched(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a, Int lda,
                 long long stride_a, const void* b, Int ldb, long long stride_b, const void* beta, void* c, Int ldc,
                 long long stride_c, Int batch) {
    const auto make = [&] {
        return original<GemmBatched<Int>>(id)(handle, trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb,
                                              stride_b, beta, c, ldc, stride_c, batch);
    };
    ListenedCall listened;
    const Product product{handle, trans_a, trans_b, m,   n,   k,   alpha, a,        b,        beta,     c,
                          dtype,  dtype,   dtype,   lda, ldb, ldc, batch, stride_a, stride_b, stride_c, dtype};
    return listened && describe(listened.call, id, product) ? listened.make(make) : make();
}

template <int id, class Int, DType>
int gemm_batched_ex(void* handle, int trans_a, int trans_b, Int m, Int n, Int k, const void* alpha, const void* a,
                    int type_a, Int lda, long long stride_a, const void* b, int type_b, Int ldb, long long stride_b,
                    const void* beta, void* c, int type_c, Int ldc, long long stride_c, Int batch, int compute,
                    int algorithm) {
    const auto make = [&] {
        return original<GemmBatchedEx<Int>>(id)(handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, stride_a, b,
                                                type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, batch, compute,
                                                algorithm);
    };
    ListenedCall listened;
    const std::optional<DType> result = dtype_of(type_c);
    const Product product{handle,
                          trans_a,
                          trans_b,
                          m,
                          n,
                          k,
                          alpha,
                          a,
                          b,
                          beta,
                          c,
                          dtype_of(type_a),
                          dtype_of(type_b),
                          result,
                          lda,
                          ldb,
                          ldc,
                          batch,
                          stride_a,
                          stride_b,
                          stride_c,
                          factor_type(compute, result.value_or(DType::Float32))};
    return listened && describe(listened.call, id, product) ? listened.make(make) : make();
}

// ---- cuBLASLt, whose descriptors are asked

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

  private:
    GetAttribute* get_;
    void* of_;
};

/// None of an order that is neither by columns nor by rows.
std::optional<Matrix> matrix_of(GetAttribute* get, void* layout, const void* data) {
    const Attributes of(get, layout);
    const auto order = of.value<int32_t>(kLayoutOrder, kByColumns);
    if (order != kByColumns && order != kByRows) return std::nullopt;
    const auto rows = static_cast<int64_t>(of.value<uint64_t>(kLayoutRows, 0));
    const auto columns = static_cast<int64_t>(of.value<uint64_t>(kLayoutColumns, 0));
    const bool by_rows = order == kByRows;
    return Matrix{data,
                  dtype_of(static_cast<int>(of.value<uint32_t>(kLayoutType, kReal32))),
                  by_rows ? columns : rows,
                  by_rows ? rows : columns,
                  of.value<int64_t>(kLayoutLeading, rows),
                  of.value<int32_t>(kLayoutBatch, 1),
                  of.value<int64_t>(kLayoutBatchOffset, 0)};
}

/// What is read and written besides the matrices: a bias, what the backward pass of an activation needs, scales.
void add_epilogue(LibraryCall& call, const Attributes& of, const Matrix& result, int64_t m, int64_t n) {
    const auto epilogue = of.value<uint32_t>(kMatmulEpilogue, 1);
    const auto type_of = [&](int attribute) {
        const auto type = of.value<int32_t>(attribute, -1);
        return type < 0 ? result.dtype : dtype_of(type);
    };
    const bool gradient = (epilogue & kEpilogueBiasGradients) != 0;
    if (gradient || (epilogue & kEpilogueBias) != 0) {
        const int64_t numbers = (epilogue & kEpilogueBiasGradientOfB) != 0 ? n : m;
        const auto* const data = of.value<const void*>(kMatmulBias, nullptr);
        add(call, {data, type_of(kMatmulBiasType), numbers, 1, numbers}, !gradient, gradient);
    }
    const bool backward = (epilogue & kEpilogueGeluBackward) != 0;
    if ((epilogue & kEpilogueAux) != 0 && (backward || (epilogue & kEpilogueGelu) != 0)) {  // else bits of a mask
        const auto* const data = of.value<const void*>(kMatmulAux, nullptr);
        const auto leading = of.value<int64_t>(kMatmulAuxLeading, result.leading);
        add(call, {data, type_of(kMatmulAuxType), result.rows, result.columns, leading}, backward, !backward);
    }
    for (const int scale : {kMatmulScaleOfA, kMatmulScaleOfB}) {
        const auto* const data = of.value<const void*>(scale, nullptr);
        add(call, {data, DType::Float32, 1, 1, 1}, true, false);
    }
}

template <int id, class, DType>
int lt_matmul(void* handle, void* description, const void* alpha, const void* a, void* layout_a, const void* b,
              void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
              const void* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
    const auto make = [&] {
        return original<LtMatmul<int>>(id)(handle, description, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d,
                                           layout_d, algorithm, workspace, workspace_bytes, stream);
    };
    ListenedCall listened;
    GetAttribute* const of_layout = get_of_layout.in_library_of(id);
    GetAttribute* const of_matmul = get_of_matmul.in_library_of(id);
    if (!listened || of_layout == nullptr || of_matmul == nullptr) return make();
    LibraryCall& call = listened.call;
    call.name = kShown[id];
    call.queue = DeviceQueue{stream, -1, true};
    call.scratch = reinterpret_cast<uint64_t>(workspace);
    const Attributes of(of_matmul, description);
    const auto add_matrix = [&](void* layout, const void* data, bool read, bool written) {
        if (const std::optional<Matrix> matrix = matrix_of(of_layout, layout, data)) add(call, *matrix, read, written);
    };
    add_matrix(layout_a, a, true, false);
    add_matrix(layout_b, b, true, false);
    const Factors factors{alpha, beta, of.value<int32_t>(kMatmulPointerMode, kPointersOfHost) == kPointersOfHost,
                          dtype_of(of.value<int32_t>(kMatmulScaleType, kReal32)).value_or(DType::Float32)};
    factors.add_to(call);
    const bool reads_c = !factors.has_no_beta();
    if (reads_c && c != d) add_matrix(layout_c, c, true, false);
    if (const std::optional<Matrix> result = matrix_of(of_layout, layout_d, d)) {
        const Attributes shape(of_layout, layout_d);
        add(call, *result, reads_c && c == d, true);
        add_epilogue(call, of, *result, static_cast<int64_t>(shape.value<uint64_t>(kLayoutRows, 0)),
                     static_cast<int64_t>(shape.value<uint64_t>(kLayoutColumns, 0)));
    } else {
        call.complete = false;
    }
    return listened.make(make);
}

// The forms of cublas_calls.def.
// NOLINTBEGIN(readability-identifier-naming)
template <int id, class Int, DType dtype>
constexpr auto ours_Gemm = gemm<id, Int, dtype>;
template <int id, class Int, DType dtype>
constexpr auto ours_GemmEx = gemm_ex<id, Int, dtype>;
template <int id, class Int, DType dtype>
constexpr auto ours_GemmBatched = gemm_batched<id, Int, dtype>;
template <int id, class Int, DType dtype>
constexpr auto ours_GemmBatchedEx = gemm_batched_ex<id, Int, dtype>;
template <int id, class Int, DType dtype>
constexpr auto ours_LtMatmul = lt_matmul<id, Int, dtype>;
// NOLINTEND(readability-identifier-naming)

template <class Function>
void* address_of(Function* function) {
    return reinterpret_cast<void*>(function);
}

}  // namespace

const ReplacedImport kImports[] = {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) \
    {#function, address_of<form<integer>>(ours_##form<k_##function, integer, DType::dtype>), &theirs[k_##function]},
#include "interpose/libraries/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
};
const int kImportCount = static_cast<int>(std::size(kImports));

}  // namespace numsan::cublas
