#include "interpose/python/names/kept_sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "interpose/python/api/gate.h"
#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

constexpr size_t kMostLines = 64;

std::atomic<void*> g_main_code{nullptr};

struct Question {
    const PythonApi& api;
    void (*on_own_thread)();
    std::vector<SourceFrame> frames;
    LiveNames::Sources answer;
};

/// What torch.fx wrote is explained from its graph, and what is frozen into the interpreter is not shown.
bool lies_in_no_file(const std::string& file) {
    if (file.empty() || file.starts_with("<frozen ") || file.starts_with("<eval_with_key>")) return false;
    struct stat about {};
    return file.front() == '<' || stat(file.c_str(), &about) != 0;
}

/// A new reference to the list that the script reads.
void* wanted_lines(const PythonApi& api, const std::vector<SourceFrame>& frames) {
    Reference list(api, api.PyList_New(0));
    for (const SourceFrame& frame : frames) {
        if (list.get() == nullptr) return nullptr;
        const Reference one(api, api.Py_BuildValue("(siN)", frame.file.c_str(), frame.line,
                                                   api.PyLong_FromVoidPtr(const_cast<void*>(frame.code))));
        if (one.get() == nullptr || api.PyList_Append(list.get(), one.get()) != 0) return nullptr;
    }
    return list.release();
}

void read_answer(const PythonApi& api, void* answer, Question& question) {
    for (ptrdiff_t i = 0, count = api.PyList_Size(answer); i < count; ++i) {
        void* const one = api.PyList_GetItem(answer, i);
        if (one == nullptr || api.PyTuple_Size(one) != 3) return;
        const long index = api.PyLong_AsLong(api.PyTuple_GetItem(one, 0));
        const long cell = api.PyLong_AsLong(api.PyTuple_GetItem(one, 1));
        ptrdiff_t size = 0;
        const char* const text = api.PyUnicode_AsUTF8AndSize(api.PyTuple_GetItem(one, 2), &size);
        if (text == nullptr || index < 0 || size_t(index) >= question.frames.size()) return;
        const SourceFrame& frame = question.frames[size_t(index)];
        KeptSource source{std::string(text, size_t(size))};
        if (cell > 0) source.cell = int(cell);
        question.answer.insert_or_assign({{frame.file, frame.line}, frame.function}, std::move(source));
    }
}

void ask(Question& question) {
    const PythonApi& api = question.api;
    if (question.on_own_thread != nullptr) question.on_own_thread();
    const Reference globals(api, api.PyDict_New());
    const Reference wanted(api, wanted_lines(api, question.frames));
    void* const code = g_main_code.load(std::memory_order_acquire);
    const Reference main(api, code != nullptr ? api.Py_BuildValue("O", code) : api.Py_BuildValue(""));
    const bool asked = globals.get() != nullptr && wanted.get() != nullptr && main.get() != nullptr &&
                       api.PyDict_SetItemString(globals.get(), "wanted", wanted.get()) == 0 &&
                       api.PyDict_SetItemString(globals.get(), "main_code", main.get()) == 0 &&
                       run_script(api, kKeptSourcesScript, globals.get());
    void* const answer = asked ? api.PyDict_GetItemString(globals.get(), "answer") : nullptr;  // borrowed
    if (answer != nullptr) read_answer(api, answer, question);
    api.PyErr_Clear();
}

}  // namespace

LiveNames::Sources kept_sources(const PythonApi& api, std::vector<SourceFrame> frames, void (*on_own_thread)()) {
    const auto same = [](const SourceFrame& a, const SourceFrame& b) {
        return a.file == b.file && a.line == b.line && a.function == b.function;
    };
    std::vector<SourceFrame> wanted;
    for (SourceFrame& frame : frames) {
        const auto equal =
            std::find_if(wanted.begin(), wanted.end(), [&](const auto& one) { return same(one, frame); });
        if (equal != wanted.end()) {
            if (equal->code != frame.code) equal->code = nullptr;  // two that cannot be told apart afterwards
        } else if (wanted.size() < kMostLines && !frame.native && lies_in_no_file(frame.file)) {
            wanted.push_back(std::move(frame));
        }
    }
    if (wanted.empty() || python_free_threaded(api)) return {};
    if (holds_python_lock(api) && !python_access().closed()) return {};
    const auto question = std::make_shared<Question>(Question{api, on_own_thread, std::move(wanted), {}});
    const bool done = on_own_python_thread(api, [question] { ask(*question); });
    return done ? std::move(question->answer) : LiveNames::Sources{};
}

void remember_main_code(const PythonApi& api) {
    const PythonLock lock(api);
    const Reference globals(api, api.PyDict_New());
    if (globals.get() == nullptr || !run_script(api, kMainCodeScript, globals.get())) return;
    void* const code = api.PyDict_GetItemString(globals.get(), "answer");  // borrowed
    const Reference none(api, api.Py_BuildValue(""));
    if (code == nullptr || code == none.get()) return;
    api.Py_IncRef(code);
    g_main_code.store(code, std::memory_order_release);
}

}  // namespace numsan
