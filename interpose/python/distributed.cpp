#include "interpose/python/distributed.h"

#include <memory>

#include "interpose/python/api/api.h"
#include "interpose/python/api/gate.h"
#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/names/variables.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

struct Question {
    const PythonApi& api;
    void (*on_own_thread)();
    long rank, world_size;
};

long number(const PythonApi& api, void* globals, const char* name) {
    void* value = api.PyDict_GetItemString(globals, name);  // borrowed
    const long read = value != nullptr ? api.PyLong_AsLong(value) : -1;
    if (read == -1) api.PyErr_Clear();
    return read;
}

/// False where torch's world says that there is no group: then no Python code needs to run. A torch that keeps it
/// elsewhere is asked.
bool may_have_group(const PythonApi& api) {
    void* const world = global_of(api, "torch.distributed.distributed_c10d", "_world");
    if (world == nullptr) return imported(api, "torch.distributed") != nullptr;
    const Reference own(api, api.PyObject_GenericGetDict(world, nullptr));
    void* const group = own.get() != nullptr ? api.PyDict_GetItemString(own.get(), "_default_pg") : nullptr;
    api.PyErr_Clear();
    const Reference none(api, api.Py_BuildValue(""));
    return group == nullptr || group != none.get();
}

void ask(Question& question) {
    const PythonApi& api = question.api;
    {
        const WithoutCollection without(api);
        if (!may_have_group(api)) return;
    }
    if (question.on_own_thread != nullptr) question.on_own_thread();
    const Reference globals(api, api.PyDict_New());
    if (globals.get() == nullptr || !run_script(api, kProcessGroupScript, globals.get())) return api.PyErr_Clear();
    question.rank = number(api, globals.get(), "rank");
    question.world_size = number(api, globals.get(), "world_size");
}

}  // namespace

std::optional<ProcessRank> rank_by_python(void (*on_own_thread)()) {
    const PythonApi* api = python_api();
    const InsidePython inside;
    if (!inside || api == nullptr || !python_usable(*api)) return std::nullopt;
    // In the middle of an operator the lock is not ours to give up.
    if (holds_python_lock(*api) && !python_access().closed()) return std::nullopt;
    const auto question = std::make_shared<Question>(Question{*api, on_own_thread, -1, -1});
    if (!on_own_python_thread(*api, [question] { ask(*question); }) || question->rank < 0 ||
        question->world_size <= question->rank)
        return std::nullopt;
    return ProcessRank{static_cast<int>(question->rank), static_cast<int>(question->world_size)};
}

}  // namespace numsan
