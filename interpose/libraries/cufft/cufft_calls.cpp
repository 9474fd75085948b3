#include "interpose/libraries/cufft/cufft_calls.h"

#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "interpose/libraries/cufft/cufft_abi.h"
#include "interpose/libraries/cufft/cufft_plan.h"
#include "interpose/libraries/library_functions.h"
#include "interpose/libraries/listened_call.h"

namespace numsan::cufft {
namespace {

enum Id : int {
#define NUMSAN_CUFFT_EXEC(function, form, ours) k##function,
#define NUMSAN_CUFFT_PLAN(function, form, ours) k##function,
#include "interpose/libraries/cufft/cufft_calls.def"
#undef NUMSAN_CUFFT_EXEC
#undef NUMSAN_CUFFT_PLAN
    kIdCount
};

constexpr const char* kNames[] = {
#define NUMSAN_CUFFT_EXEC(function, form, ours) "cufft" #function,
#define NUMSAN_CUFFT_PLAN(function, form, ours) "cufft" #function,
#include "interpose/libraries/cufft/cufft_calls.def"
#undef NUMSAN_CUFFT_EXEC
#undef NUMSAN_CUFFT_PLAN
};

void* theirs[kIdCount];  // each is set before ours is called

template <class Function>
Function* original(int id) {
    return their_function<Function>(theirs[id]);
}

/// What plans were seen to be. [MT]
class Plans {
  public:
    void add(int handle, const Plan& made) noexcept {
        change(handle, [&](Plan& plan) { plan = made; });
    }
    /// One that there is already: what was said of it before still holds.
    void make(int handle, Plan made) noexcept {
        change(handle, [&](Plan& plan) {
            made.stream = plan.stream;
            made.work_area = plan.work_area;
            made.has_callbacks = plan.has_callbacks;
            plan = made;
        });
    }
    /// Calls how(plan); one that is not known has no size.
    template <class How>
    void change(int handle, How how) noexcept {
        const std::lock_guard lock(mutex_);
        try {
            how(plans_.try_emplace(handle, not_made()).first->second);
        } catch (const std::bad_alloc&) {
            // It is not looked at.
        }
    }
    void forget(int handle) noexcept {
        const std::lock_guard lock(mutex_);
        plans_.erase(handle);
    }
    Plan find(int handle) const noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = plans_.find(handle);
        return found != plans_.end() ? found->second : not_made();
    }

  private:
    static Plan not_made() {
        Plan plan;
        plan.unseen = "its plan was not seen to be made";
        return plan;
    }

    mutable std::mutex mutex_;
    std::map<int, Plan> plans_;
};

Plans& plans() {
    static auto* const all = new Plans;
    return *all;
}

template <class Make>
int call_theirs(int id, int plan, const void* in, void* out, Make make) {
    ListenedCall listened;
    if (!listened) return make();
    listened.call.name = kNames[id];
    describe(listened.call, plans().find(plan), in, out);
    return listened.make(make);
}

// ---- forms of calls: theirs are called with what ours are given

template <int id>
int exec(int plan, void* in, void* out) {
    return call_theirs(id, plan, in, out, [&] { return original<Exec>(id)(plan, in, out); });
}

template <int id>
int exec_with_direction(int plan, void* in, void* out, int direction) {
    return call_theirs(id, plan, in, out, [&] { return original<ExecWithDirection>(id)(plan, in, out, direction); });
}

/// Side by side, as all but PlanMany have it.
template <class... Sizes>
Plan plan_of(int type, int batch, Sizes... sizes) {
    const int n[] = {sizes...};
    return plan_of_many<int>(sizeof...(sizes), n, nullptr, 0, 0, nullptr, 0, 0, types_of(type), batch);
}

/// Hears of a call that was accepted.
template <class Hear>
int heard(int status, Hear hear) {
    if (status == kSuccess) hear();
    return status;
}

int plan_1d(int* plan, int x, int type, int batch) {
    return heard(original<Plan1d>(kPlan1d)(plan, x, type, batch), [&] { plans().add(*plan, plan_of(type, batch, x)); });
}

int plan_2d(int* plan, int x, int y, int type) {
    return heard(original<Plan2d>(kPlan2d)(plan, x, y, type), [&] { plans().add(*plan, plan_of(type, 1, x, y)); });
}

int plan_3d(int* plan, int x, int y, int z, int type) {
    return heard(original<Plan3d>(kPlan3d)(plan, x, y, z, type),
                 [&] { plans().add(*plan, plan_of(type, 1, x, y, z)); });
}

int plan_many(int* plan, int rank, int* n, int* in_embed, int in_stride, int in_distance, int* out_embed,
              int out_stride, int out_distance, int type, int batch) {
    const Plan made = plan_of_many(rank, n, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance,
                                   types_of(type), batch);
    return heard(original<PlanMany>(kPlanMany)(plan, rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
                                               out_distance, type, batch),
                 [&] { plans().add(*plan, made); });
}

int make_plan_1d(int plan, int x, int type, int batch, size_t* work_bytes) {
    return heard(original<MakePlan1d>(kMakePlan1d)(plan, x, type, batch, work_bytes),
                 [&] { plans().make(plan, plan_of(type, batch, x)); });
}

int make_plan_2d(int plan, int x, int y, int type, size_t* work_bytes) {
    return heard(original<MakePlan2d>(kMakePlan2d)(plan, x, y, type, work_bytes),
                 [&] { plans().make(plan, plan_of(type, 1, x, y)); });
}

int make_plan_3d(int plan, int x, int y, int z, int type, size_t* work_bytes) {
    return heard(original<MakePlan3d>(kMakePlan3d)(plan, x, y, z, type, work_bytes),
                 [&] { plans().make(plan, plan_of(type, 1, x, y, z)); });
}

template <int id, class Int>
int make_plan_many(int plan, int rank, Int* n, Int* in_embed, Int in_stride, Int in_distance, Int* out_embed,
                   Int out_stride, Int out_distance, int type, Int batch, size_t* work_bytes) {
    const Plan made = plan_of_many(rank, n, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance,
                                   types_of(type), batch);
    return heard(original<MakePlanMany<Int>>(id)(plan, rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
                                                 out_distance, type, batch, work_bytes),
                 [&] { plans().make(plan, made); });
}

int xt_make_plan_many(int plan, int rank, long long* n, long long* in_embed, long long in_stride, long long in_distance,
                      int in_type, long long* out_embed, long long out_stride, long long out_distance, int out_type,
                      long long batch, size_t* work_bytes, int execution_type) {
    const Plan made = plan_of_many(rank, n, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance,
                                   types_of(in_type, out_type), batch);
    return heard(original<XtMakePlanMany>(kXtMakePlanMany)(plan, rank, n, in_embed, in_stride, in_distance, in_type,
                                                           out_embed, out_stride, out_distance, out_type, batch,
                                                           work_bytes, execution_type),
                 [&] { plans().make(plan, made); });
}

int set_stream(int plan, void* stream) {
    return heard(original<SetStream>(kSetStream)(plan, stream),
                 [&] { plans().change(plan, [&](Plan& one) { one.stream = stream; }); });
}

int set_work_area(int plan, void* area) {
    return heard(original<SetWorkArea>(kSetWorkArea)(plan, area),
                 [&] { plans().change(plan, [&](Plan& one) { one.work_area = area; }); });
}

int set_jit_callback(int plan, const char* name, const void* fatbin, size_t fatbin_bytes, int type,
                     void** caller_info) {
    return heard(original<SetJitCallback>(kXtSetJITCallback)(plan, name, fatbin, fatbin_bytes, type, caller_info),
                 [&] { plans().change(plan, [](Plan& one) { one.has_callbacks = true; }); });
}

int destroy(int plan) {
    plans().forget(plan);  // its number may be another one's as soon as it is gone
    return original<Destroy>(kDestroy)(plan);
}

constexpr auto make_plan_many_int = make_plan_many<kMakePlanMany, int>;
constexpr auto make_plan_many_long = make_plan_many<kMakePlanMany64, long long>;

}  // namespace

const ReplacedImport kImports[] = {
#define NUMSAN_CUFFT_EXEC(function, form, ours) \
    {"cufft" #function, address_of<form>(ours<k##function>), &theirs[k##function]},
#define NUMSAN_CUFFT_PLAN(function, form, ours) {"cufft" #function, address_of<form>(ours), &theirs[k##function]},
#include "interpose/libraries/cufft/cufft_calls.def"
#undef NUMSAN_CUFFT_EXEC
#undef NUMSAN_CUFFT_PLAN
};
const int kImportCount = static_cast<int>(std::size(kImports));

}  // namespace numsan::cufft
