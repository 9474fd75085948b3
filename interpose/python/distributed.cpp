#include "interpose/python/distributed.h"

#include "interpose/python/api.h"
#include "interpose/python/gate.h"
#include "interpose/python/own_thread.h"
#include "interpose/python/reference.h"

namespace numsan {
namespace {

// Only what is imported already is asked.
constexpr char kCode[] = R"python(
import sys
rank = world_size = -1
group = sys.modules.get('torch.distributed')
if group is not None and group.is_available() and group.is_initialized():
    rank, world_size = group.get_rank(), group.get_world_size()
)python";
constexpr int kFileInput = 257;  // Py_file_input

struct Question {
    const PythonApi& api;
    void (*on_own_thread)();
    long rank, world_size;
};

long number(const PythonApi& api, void* globals, const char* name) {
    void* value = api.PyDict_GetItemString(globals, name);  // pinned
    const long read = value != nullptr ? api.PyLong_AsLong(value) : -1;
    if (read == -1) api.PyErr_Clear();
    return read;
}

void ask(void* argument) {
    auto& question = *static_cast<Question*>(argument);
    const PythonApi& api = question.api;
    if (question.on_own_thread != nullptr) question.on_own_thread();
    const Reference globals(api, api.PyDict_New());
    const Reference code(api, api.Py_CompileString(kCode, "<numsan>", kFileInput));
    if (globals.get() == nullptr || code.get() == nullptr) return api.PyErr_Clear();
    const Reference done(api, api.PyEval_EvalCode(code.get(), globals.get(), globals.get()));
    if (done.get() == nullptr) return api.PyErr_Clear();
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
