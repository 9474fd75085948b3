// libcufft.so.12 over the fake driver: plans, and transforms of them.
#include <map>
#include <mutex>

#include "tests/fakes/cufft/transform.h"

using fake_cufft::Side;
using fake_cufft::Transform;

namespace {

/// How one side lies; by `embed` where it is given.
struct Given {
    const long long* embed = nullptr;
    long long stride = 1, distance = 0;
};

struct Plan {
    int rank = 0;
    int64_t n[3] = {1, 1, 1}, batch = 1;
    cufftType type = CUFFT_C2C;
    bool in_layout = false;
    int64_t embed[2][3] = {}, stride[2] = {}, distance[2] = {};
    cudaStream_t stream = nullptr;
};

struct Plans {
    std::mutex mutex;
    std::map<int, Plan> all;
    int last = 0;
};
Plans& plans() {
    static auto* const made = new Plans;
    return *made;
}

cufftResult make(cufftHandle handle, int rank, const long long* n, Given in, Given out, cufftType type,
                 long long batch) {
    if (rank < 1 || rank > 3) return CUFFT_INVALID_SIZE;
    const std::lock_guard lock(plans().mutex);
    const auto found = plans().all.find(handle);
    if (found == plans().all.end()) return CUFFT_INVALID_PLAN;
    Plan& plan = found->second;
    plan.rank = rank;
    plan.type = type;
    plan.batch = batch;
    plan.in_layout = in.embed != nullptr;
    for (int d = 0; d < rank; ++d) {
        if (n[d] < 1) return CUFFT_INVALID_SIZE;
        plan.n[d] = n[d];
        for (int side = 0; plan.in_layout && side < 2; ++side) plan.embed[side][d] = (side == 0 ? in : out).embed[d];
    }
    for (int side = 0; side < 2; ++side) {
        plan.stride[side] = (side == 0 ? in : out).stride;
        plan.distance[side] = (side == 0 ? in : out).distance;
    }
    return CUFFT_SUCCESS;
}

cufftResult make_new(cufftHandle* handle, int rank, const long long* n, cufftType type, long long batch) {
    const cufftResult created = cufftCreate(handle);
    return created == CUFFT_SUCCESS ? make(*handle, rank, n, {}, {}, type, batch) : created;
}

/// `real`: that side has real numbers; else it has the half of a real transform, or all of a complex one.
Side side_of(const Plan& plan, int index, bool real, bool of_real, bool in_place) {
    const int last = plan.rank - 1;
    const int64_t half = plan.n[last] / 2 + 1;
    Side side;
    side.real = real;
    int64_t stride = plan.in_layout ? plan.stride[index] : 1;
    for (int d = last; d >= 0; --d) {
        const int64_t row = d != last  ? plan.n[d]
                            : !of_real ? plan.n[d]
                            : real     ? (in_place ? 2 * half : plan.n[d])
                                       : half;
        side.strides[d] = stride;
        stride *= plan.in_layout ? plan.embed[index][d] : row;
    }
    side.distance = plan.in_layout ? plan.distance[index] : stride;
    return side;
}

cufftResult run(cufftHandle handle, cufftType type, const void* in, void* out, int direction) {
    Plan plan;
    {
        const std::lock_guard lock(plans().mutex);
        const auto found = plans().all.find(handle);
        if (found == plans().all.end() || found->second.rank == 0) return CUFFT_INVALID_PLAN;
        plan = found->second;
    }
    if (plan.type != type) return CUFFT_INVALID_TYPE;
    const bool from_real = type == CUFFT_R2C || type == CUFFT_D2Z, to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
    Transform transform;
    transform.rank = plan.rank;
    for (int d = 0; d < 3; ++d) transform.n[d] = plan.n[d];
    transform.batch = plan.batch;
    transform.doubles = type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D;
    transform.direction = direction;
    transform.in = side_of(plan, 0, from_real, from_real || to_real, in == out);
    transform.out = side_of(plan, 1, to_real, from_real || to_real, in == out);
    transform.from = in;
    transform.to = out;
    return transform.launch(plan.stream);
}

/// As cufftMakePlanMany64 takes them.
struct Wide {
    Wide(const int* given, int rank) : embedded(given != nullptr) {
        for (int d = 0; embedded && d < rank && d < 3; ++d) values[d] = given[d];
    }
    const long long* get() const { return embedded ? values : nullptr; }
    bool embedded;
    long long values[3] = {};
};

}  // namespace

#pragma GCC visibility push(default)

cufftResult cufftCreate(cufftHandle* handle) {
    const std::lock_guard lock(plans().mutex);
    *handle = ++plans().last;
    plans().all[*handle] = {};
    return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
    const std::lock_guard lock(plans().mutex);
    return plans().all.erase(handle) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
    const std::lock_guard lock(plans().mutex);
    plans().all[handle].stream = stream;
    return CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(cufftHandle, int) { return CUFFT_SUCCESS; }
cufftResult cufftSetWorkArea(cufftHandle, void*) { return CUFFT_SUCCESS; }

cufftResult cufftPlan1d(cufftHandle* handle, int x, cufftType type, int batch) {
    const long long n[] = {x};
    return make_new(handle, 1, n, type, batch);
}
cufftResult cufftPlan2d(cufftHandle* handle, int x, int y, cufftType type) {
    const long long n[] = {x, y};
    return make_new(handle, 2, n, type, 1);
}
cufftResult cufftPlan3d(cufftHandle* handle, int x, int y, int z, cufftType type) {
    const long long n[] = {x, y, z};
    return make_new(handle, 3, n, type, 1);
}
cufftResult cufftMakePlan1d(cufftHandle handle, int x, cufftType type, int batch, size_t* bytes) {
    const long long n[] = {x};
    *bytes = 0;
    return make(handle, 1, n, {}, {}, type, batch);
}
cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* in_embed, long long in_stride,
                                long long in_distance, long long* out_embed, long long out_stride,
                                long long out_distance, cufftType type, long long batch, size_t* bytes) {
    *bytes = 0;
    return make(handle, rank, n, {in_embed, in_stride, in_distance}, {out_embed, out_stride, out_distance}, type,
                batch);
}
cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* n, int* in_embed, int in_stride, int in_distance,
                              int* out_embed, int out_stride, int out_distance, cufftType type, int batch,
                              size_t* bytes) {
    *bytes = 0;
    return make(handle, rank, Wide(n, rank).get(), {Wide(in_embed, rank).get(), in_stride, in_distance},
                {Wide(out_embed, rank).get(), out_stride, out_distance}, type, batch);
}
cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* n, long long* in_embed, long long in_stride,
                                long long in_distance, cudaDataType in_type, long long* out_embed, long long out_stride,
                                long long out_distance, cudaDataType out_type, long long batch, size_t* bytes,
                                cudaDataType execution_type) {
    const struct {
        cudaDataType in, out;
        cufftType type;
    } known[] = {{CUDA_C_32F, CUDA_C_32F, CUFFT_C2C}, {CUDA_C_64F, CUDA_C_64F, CUFFT_Z2Z},
                 {CUDA_R_32F, CUDA_C_32F, CUFFT_R2C}, {CUDA_C_32F, CUDA_R_32F, CUFFT_C2R},
                 {CUDA_R_64F, CUDA_C_64F, CUFFT_D2Z}, {CUDA_C_64F, CUDA_R_64F, CUFFT_Z2D}};
    for (const auto& one : known) {
        if (one.in == in_type && one.out == out_type && (execution_type == in_type || execution_type == out_type))
            return cufftMakePlanMany64(handle, rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
                                       out_distance, one.type, batch, bytes);
    }
    return CUFFT_NOT_SUPPORTED;
}
cufftResult cufftPlanMany(cufftHandle* handle, int rank, int* n, int* in_embed, int in_stride, int in_distance,
                          int* out_embed, int out_stride, int out_distance, cufftType type, int batch) {
    size_t bytes = 0;
    const cufftResult created = cufftCreate(handle);
    return created != CUFFT_SUCCESS ? created
                                    : cufftMakePlanMany(*handle, rank, n, in_embed, in_stride, in_distance, out_embed,
                                                        out_stride, out_distance, type, batch, &bytes);
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex* in, cufftComplex* out, int direction) {
    return run(handle, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
    return run(handle, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle handle, cufftReal* in, cufftComplex* out) {
    return run(handle, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecD2Z(cufftHandle handle, cufftDoubleReal* in, cufftDoubleComplex* out) {
    return run(handle, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex* in, cufftReal* out) {
    return run(handle, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2D(cufftHandle handle, cufftDoubleComplex* in, cufftDoubleReal* out) {
    return run(handle, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
cufftResult cufftXtExec(cufftHandle handle, void* in, void* out, int direction) {
    cufftType type = CUFFT_C2C;
    {
        const std::lock_guard lock(plans().mutex);
        const auto found = plans().all.find(handle);
        if (found == plans().all.end()) return CUFFT_INVALID_PLAN;
        type = found->second.type;
    }
    return run(handle, type, in, out, direction);
}

#pragma GCC visibility pop
