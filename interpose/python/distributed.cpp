#include "interpose/python/distributed.h"

#include "interpose/python/api/api.h"
#include "interpose/python/api/gate.h"
#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
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

void ask(void* argument) {
    auto& question = *static_cast<Question*>(argument);
    const PythonApi& api = question.api;
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
    Question question{*api, on_own_thread, -1, -1};
    if (!on_own_python_thread(*api, ask, &question) || question.rank < 0 || question.world_size <= question.rank)
        return std::nullopt;
    return ProcessRank{static_cast<int>(question.rank), static_cast<int>(question.world_size)};
}

}  // namespace numsan
