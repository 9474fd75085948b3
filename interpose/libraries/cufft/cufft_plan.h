// What a plan of cuFFT's says of the numbers that a transform reads and writes: a call that carries it out is given no
// more than two addresses.
#pragma once

#include <cstdint>
#include <optional>

#include "host/kernels/library_call.h"

namespace numsan::cufft {

inline constexpr int kMostRank = 3;

/// How the numbers of one side lie, in elements of it.
struct Layout {
    bool is_given = false;  ///< else they lie side by side, those of a transform behind those of the one before
    int64_t embed[kMostRank] = {};
    int64_t stride = 0, distance = 0;
};

/// Numbers on both sides of a transform. Of real numbers on one side the other has half of its complex ones: the rest
/// is their mirror image.
struct PlanTypes {
    DType in, out;
};
/// Of a cufftType; of two of cudaDataType, one for each side. None: numbers that are not known.
std::optional<PlanTypes> types_of(int type) noexcept;
std::optional<PlanTypes> types_of(int in, int out) noexcept;

struct Plan {
    int rank = 0;
    int64_t n[kMostRank] = {};  ///< outermost first
    std::optional<PlanTypes> types;
    int64_t batch = 1;
    Layout in, out;
    void* stream = nullptr;
    void* work_area = nullptr;     ///< that the program gave; null: the library's own
    bool has_callbacks = false;    ///< the program's own code reads or writes the numbers
    const char* unseen = nullptr;  ///< why what it does is not known
};

/// As cufftPlanMany is given it, by int and by long long; but for the types.
template <class Int>
Plan plan_of_many(int rank, const Int* n, const Int* in_embed, Int in_stride, Int in_distance, const Int* out_embed,
                  Int out_stride, Int out_distance, const std::optional<PlanTypes>& types, Int batch) noexcept {
    Plan plan;
    plan.rank = rank;
    plan.types = types;
    plan.batch = batch;
    if (rank < 1 || rank > kMostRank || n == nullptr || (in_embed == nullptr) != (out_embed == nullptr)) {
        plan.unseen = "the layout of its plan is not known";
        return plan;
    }
    for (int d = 0; d < rank; ++d) plan.n[d] = n[d];
    if (in_embed == nullptr) return plan;
    plan.in = {true, {}, in_stride, in_distance};
    plan.out = {true, {}, out_stride, out_distance};
    for (int d = 0; d < rank; ++d) {
        plan.in.embed[d] = in_embed[d];
        plan.out.embed[d] = out_embed[d];
    }
    return plan;
}

/// Describes the transform of what lies at `in` to `out`.
void describe(LibraryCall& call, const Plan& plan, const void* in, void* out) noexcept;

}  // namespace numsan::cufft
