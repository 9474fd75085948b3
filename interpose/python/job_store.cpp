#include "interpose/python/job_store.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
    std::optional<std::string> text;  ///< to be left; none: what is there is read
    std::optional<std::vector<std::string>> answer;
};

void read(Question& question, void* answer) {
    const PythonApi& api = question.api;
    const ptrdiff_t count = api.PyList_Size(answer);
    if (count < 0) return;
    question.answer.emplace();
    for (ptrdiff_t i = 0; i < count; ++i) {
        ptrdiff_t size = 0;
        const char* const text = api.PyUnicode_AsUTF8AndSize(api.PyList_GetItem(answer, i), &size);
        if (text != nullptr) question.answer->emplace_back(text, static_cast<size_t>(size));
    }
}

void ask(Question& question) {
    const PythonApi& api = question.api;
    if (imported(api, "torch.distributed") == nullptr) return;
    if (question.on_own_thread != nullptr) question.on_own_thread();
    const Reference globals(api, api.PyDict_New());
    const Reference text(api, question.text ? api.Py_BuildValue("s", question.text->c_str()) : api.Py_BuildValue(""));
    const Reference most(api, api.Py_BuildValue("i", kMostJobTexts));
    const bool asked = globals.get() != nullptr && text.get() != nullptr && most.get() != nullptr &&
                       api.PyDict_SetItemString(globals.get(), "text", text.get()) == 0 &&
                       api.PyDict_SetItemString(globals.get(), "most", most.get()) == 0 &&
                       run_script(api, kJobStoreScript, globals.get());
    void* const answer = asked ? api.PyDict_GetItemString(globals.get(), "answer") : nullptr;  // borrowed
    if (answer != nullptr) read(question, answer);
    api.PyErr_Clear();
}

/// A store did not answer at once: it is not asked again.
std::atomic<bool> g_is_slow{false};

std::optional<std::vector<std::string>> asked(std::optional<std::string> text, void (*on_own_thread)()) {
    constexpr auto kPatience = std::chrono::seconds(3);
    const PythonApi* api = python_api();
    const InsidePython inside;
    if (!inside || api == nullptr || !python_usable(*api) || g_is_slow.load()) return std::nullopt;
    // In the middle of an operator the lock is not ours to give up.
    if (holds_python_lock(*api) && !python_access().closed()) return std::nullopt;
    const auto question = std::make_shared<Question>(Question{*api, on_own_thread, std::move(text), std::nullopt});
    const auto began = std::chrono::steady_clock::now();
    const bool done = on_own_python_thread(*api, [question] { ask(*question); });
    if (!done || std::chrono::steady_clock::now() - began > kPatience) g_is_slow.store(true);
    return done ? std::move(question->answer) : std::nullopt;
}

bool leave(const std::string& text, void (*on_own_thread)()) { return asked(text, on_own_thread).has_value(); }

std::vector<std::string> left(void (*on_own_thread)()) {
    return asked(std::nullopt, on_own_thread).value_or(std::vector<std::string>());
}

}  // namespace

JobStore job_store_by_python() noexcept { return {leave, left}; }

}  // namespace numsan
