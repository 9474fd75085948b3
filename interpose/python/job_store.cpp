#include "interpose/python/job_store.h"

#include <sys/resource.h>

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
    JobMember self;
    std::optional<std::string> text;                 ///< to be left; none: what is there is read
    std::optional<std::vector<std::string>> answer;  ///< none: there is no store, or
    bool failed = false;                             ///< it did not answer
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
    const Reference rank(api, api.Py_BuildValue("i", question.self.rank));
    const Reference world_size(api, api.Py_BuildValue("i", question.self.world_size));
    const Reference job(api, api.Py_BuildValue("s", question.self.job.c_str()));
    const auto define = [&](const char* name, const Reference& value) {
        return value.get() != nullptr && api.PyDict_SetItemString(globals.get(), name, value.get()) == 0;
    };
    const bool asked = globals.get() != nullptr && define("text", text) && define("most", most) &&
                       define("rank", rank) && define("world_size", world_size) && define("job", job) &&
                       run_script(api, kJobStoreScript, globals.get());
    void* const answer = asked ? api.PyDict_GetItemString(globals.get(), "answer") : nullptr;  // borrowed
    void* const failed = asked ? api.PyDict_GetItemString(globals.get(), "failed") : nullptr;
    if (answer != nullptr) read(question, answer);
    api.PyErr_Clear();
    question.failed = failed == nullptr || api.PyLong_AsLong(failed) != 0;
    api.PyErr_Clear();
}

/// A store did not answer a few times in a row, or was waited for long: it is not asked again.
std::atomic<int> g_failures{0};
constexpr int kMostFailures = 3;
constexpr auto kPatience = std::chrono::seconds(3);

/// The process that has the store may have as many files open as this one, and one of each rank is open already.
bool has_room_for(int ranks) {
    rlimit files{};
    return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 3 > static_cast<rlim_t>(ranks);
}

std::optional<std::vector<std::string>> asked(std::optional<std::string> text, const JobMember& self,
                                              void (*on_own_thread)()) {
    const PythonApi* api = python_api();
    const InsidePython inside;
    if (!inside || api == nullptr || !python_usable(*api) || g_failures.load() >= kMostFailures) return std::nullopt;
    // In the middle of an operator the lock is not ours to give up.
    if (holds_python_lock(*api) && !python_access().closed()) return std::nullopt;
    const auto question =
        std::make_shared<Question>(Question{*api, on_own_thread, self, std::move(text), std::nullopt, false});
    const auto began = std::chrono::steady_clock::now();
    const bool done = on_own_python_thread(*api, [question] { ask(*question); });
    if (!done || question->failed) {
        g_failures += std::chrono::steady_clock::now() - began > kPatience ? kMostFailures : 1;
        return std::nullopt;
    }
    if (question->answer) g_failures.store(0);
    return std::move(question->answer);
}

bool leave(const std::string& text, const JobMember& self, void (*on_own_thread)()) {
    return has_room_for(self.world_size) && asked(text, self, on_own_thread).has_value();
}

std::vector<std::string> left(const JobMember& self, void (*on_own_thread)()) {
    return asked(std::nullopt, self, on_own_thread).value_or(std::vector<std::string>());
}

}  // namespace

JobStore job_store_by_python() noexcept { return {leave, left}; }

}  // namespace numsan
