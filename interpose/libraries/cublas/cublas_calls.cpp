#include "interpose/libraries/cublas/cublas_calls.h"

#include <iterator>
#include <optional>

#include "interpose/libraries/cublas/cublas_abi.h"
#include "interpose/libraries/cublas/cublas_lt.h"
#include "interpose/libraries/cublas/cublas_matrix.h"
#include "interpose/libraries/library_functions.h"
#include "interpose/libraries/listened_call.h"

namespace numsan::cublas {
namespace {

enum Id : int {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) k_##function,
#include "interpose/libraries/cublas/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
    kIdCount
};

constexpr const char* kShown[] = {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) #shown,
#include "interpose/libraries/cublas/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
};

void* theirs[kIdCount];  // each is set before ours is called

template <class Function>
Function* original(int id) {
    return their_function<Function>(theirs[id]);
}

AskedFunction<GetStream> get_stream("cublasGetStream_v2");
AskedFunction<GetPointerMode> get_pointer_mode("cublasGetPointerMode_v2");
AskedFunction<GetAttribute> get_of_layout("cublasLtMatrixLayoutGetAttribute");
AskedFunction<GetAttribute> get_of_matmul("cublasLtMatmulDescGetAttribute");

/// A matrix as a call says it; `leading` and `batch_stride` in elements.
struct Operand {
    const void* data;
    Elements elements;
    int64_t leading;
    int64_t batch_stride = 0;
};

struct Shape {
    void* handle;
    int trans_a, trans_b;
    int64_t m, n, k;
    int64_t batch = 1;
};

struct Scaling {
    const void *alpha, *beta;
    DType dtype;
};

/// What all forms of a product say of it. False: what it is given cannot be found out.
bool describe(LibraryCall& call, int id, const Shape& p, const Operand& a, const Operand& b, const Operand& c,
              const Scaling& scaling) {
    void* stream = nullptr;
    int mode = kPointersOfHost;
    GetStream* const stream_of = get_stream.get();
    GetPointerMode* const mode_of = get_pointer_mode.get();
    if (stream_of == nullptr || mode_of == nullptr || stream_of(p.handle, &stream) != kSuccess ||
        mode_of(p.handle, &mode) != kSuccess)
        return false;
    call.name = kShown[id];
    call.queue = DeviceQueue{stream, -1, true};
    const auto add_matrix = [&](const Operand& one, int64_t rows, int64_t columns, bool read, bool written) {
        add(call, {one.data, one.elements, rows, columns, one.leading, p.batch, one.batch_stride}, read, written);
    };
    const bool plain_a = p.trans_a == kNoTranspose, plain_b = p.trans_b == kNoTranspose;
    add_matrix(a, plain_a ? p.m : p.k, plain_a ? p.k : p.m, true, false);
    add_matrix(b, plain_b ? p.k : p.n, plain_b ? p.n : p.k, true, false);
    const Factors factors{scaling.alpha, scaling.beta,
                          mode == kPointersOfHost ? Factors::Place::Host : Factors::Place::Device, scaling.dtype};
    factors.add_to(call);
    add_matrix(c, p.m, p.n, !factors.has_no_beta(), true);
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
    const auto says = [&] {
        return describe(listened.call, id, {handle, trans_a, trans_b, m, n, k}, {a, {dtype}, lda}, {b, {dtype}, ldb},
                        {c, {dtype}, ldc}, {alpha, beta, dtype});
    };
    return listened && says() ? listened.make(make) : make();
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
    const auto says = [&] {
        const Elements result = elements_of(type_c);
        return describe(listened.call, id, {handle, trans_a, trans_b, m, n, k}, {a, elements_of(type_a), lda},
                        {b, elements_of(type_b), ldb}, {c, result, ldc}, {alpha, beta, factor_type(compute, result)});
    };
    return listened && says() ? listened.make(make) : make();
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
    const auto says = [&] {
        return describe(listened.call, id, {handle, trans_a, trans_b, m, n, k, batch}, {a, {dtype}, lda, stride_a},
                        {b, {dtype}, ldb, stride_b}, {c, {dtype}, ldc, stride_c}, {alpha, beta, dtype});
    };
    return listened && says() ? listened.make(make) : make();
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
    const auto says = [&] {
        const Elements result = elements_of(type_c);
        return describe(listened.call, id, {handle, trans_a, trans_b, m, n, k, batch},
                        {a, elements_of(type_a), lda, stride_a}, {b, elements_of(type_b), ldb, stride_b},
                        {c, result, ldc, stride_c}, {alpha, beta, factor_type(compute, result)});
    };
    return listened && says() ? listened.make(make) : make();
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
    GetAttribute *const of_layout = get_of_layout.get(), *const of_matmul = get_of_matmul.get();
    if (!listened || of_layout == nullptr || of_matmul == nullptr) return make();
    listened.call.name = kShown[id];
    const LtProduct product{description, alpha,    a, layout_a, b,         layout_b, beta,
                            c,           layout_c, d, layout_d, workspace, stream};
    describe(listened.call, product, of_layout, of_matmul);
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

}  // namespace

const ReplacedImport kImports[] = {
#define NUMSAN_CUBLAS_CALL(function, shown, form, integer, dtype) \
    {#function, address_of<form<integer>>(ours_##form<k_##function, integer, DType::dtype>), &theirs[k_##function]},
#include "interpose/libraries/cublas/cublas_calls.def"
#undef NUMSAN_CUBLAS_CALL
};
const int kImportCount = static_cast<int>(std::size(kImports));

void find_asked() noexcept {
    for (int id = 0; id < kIdCount; ++id) {
        void* const function = __atomic_load_n(&theirs[id], __ATOMIC_ACQUIRE);
        if (id == k_cublasLtMatmul) {
            get_of_layout.find_beside(function);
            get_of_matmul.find_beside(function);
        } else {
            get_stream.find_beside(function);
            get_pointer_mode.find_beside(function);
        }
    }
}

}  // namespace numsan::cublas
