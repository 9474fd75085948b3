// Which thread asks for names, and what generated code was made from.
#include "interpose/python/names/live_names.h"

#include <charconv>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "interpose/python/api/gate.h"
#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/names/functions_in.h"
#include "interpose/python/names/name_finder.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

constexpr int32_t kObjectType = 8;  ///< ob_type: struct _object, 3.9 to 3.14

/// Reads a number in hexadecimal and the blank behind it off the front of a line.
bool take(std::string_view& rest, uintptr_t& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, 16);
    if (error != std::errc() || end == rest.data() + rest.size()) return false;
    rest.remove_prefix(size_t(end - rest.data()) + 1);
    return true;
}

/// What is read of the answer, line by line.
struct Answer {
    LiveNames names;
    std::map<uintptr_t, std::vector<SourceFrame>> stacks;  ///< those that lines of generated code name by number
};

void read_kernel(std::string_view line, bool backward, int number, Answer& answer) {
    const size_t file = line.find('\t'), code = line.find('\t', file + 1);
    if (file == line.npos || code == line.npos) return;
    answer.names.kernels[std::string(line.substr(code + 1))].push_back(
        {std::string(line.substr(0, file)), std::string(line.substr(file + 1, code - file - 1)), number, backward});
}

/// A frame, a line of generated code, or a kernel: see scripts/traced_lines.py.
void read_traced(char letter, std::string_view line, Answer& answer) {
    uintptr_t stack = 0, number = 0, module = 0;
    if (!take(line, stack) || !take(line, number)) return;
    if (letter == 'k') return read_kernel(line, stack != 0, int(number), answer);
    if (letter == 'f') {
        const size_t tab = line.find('\t');
        if (tab == line.npos) return;
        SourceFrame frame{std::string(line.substr(tab + 1)), std::string(line.substr(0, tab)), int(number)};
        frame.traced = true;
        answer.stacks[stack].push_back(std::move(frame));
    } else if (const auto made = answer.stacks.find(stack); made != answer.stacks.end() && take(line, module)) {
        std::vector<SourceFrame> frames = made->second;
        frames.front().self = reinterpret_cast<const void*>(module);
        answer.names.traced.insert_or_assign({std::string(line), int(number)}, std::move(frames));
    }
}

void read_lines(std::string_view rest, Answer& answer) {
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
        if (line.size() < 4 || line[1] != ' ') continue;
        const char letter = line[0];
        line.remove_prefix(2);
        read_traced(letter, line, answer);
    }
}

struct LookUp {
    const PythonApi& api;
    const PythonLayout* layout;
    const TensorReader reader;
    void (*on_own_thread)();
    Answer answer;
};

/// What scripts/traced_lines.py reads: owned.
struct Generated {
    explicit Generated(const PythonApi& api) : modules(api, nullptr), types(api, nullptr) {}

    Reference modules;
    Reference types;
};

/// Holds what torch.fx wrote, so that Python code can read it after the lock was let go of. False: there is none.
bool keep_generated(const PythonApi& api, const NameFinder& finder, const LiveNames& names, Generated& kept) {
    const std::vector<void*> modules = finder.graph_modules();
    if (modules.empty()) return false;
    kept.modules.reset(api.PyList_New(0));
    kept.types.reset(api.PyDict_New());
    if (kept.modules.get() == nullptr || kept.types.get() == nullptr) return false;
    for (void* const module : modules) {
        if (api.PyList_Append(kept.modules.get(), module) != 0) return false;
    }
    for (const auto& [module, name] : names.modules) {
        const Reference address(api, api.PyLong_FromVoidPtr(const_cast<void*>(module)));
        void* const type = const_cast<void*>(read_at<const void*>(module, kObjectType));
        if (address.get() == nullptr || api.PyDict_SetItem(kept.types.get(), address.get(), type) != 0) return false;
    }
    return true;
}

/// With the interpreter's lock held, which it does not let go of.
bool find_names(LookUp& wanted, Generated& generated) {
    const WithoutCollection without(wanted.api);
    NameFinder finder(wanted.api, wanted.layout, wanted.reader);
    wanted.answer.names = finder.find();
    return wanted.reader.generated && keep_generated(wanted.api, finder, wanted.answer.names, generated);
}

void read_generated(LookUp& wanted, const Generated& generated) {
    const PythonApi& api = wanted.api;
    const Reference globals(api, api.PyDict_New());
    const Reference functions(api, functions_in_function(api));
    if (globals.get() == nullptr || functions.get() == nullptr) return;
    const auto define = [&](const char* name, const Reference& value) {
        return api.PyDict_SetItemString(globals.get(), name, value.get()) == 0;
    };
    if (!define("modules", generated.modules) || !define("types", generated.types) ||
        !define("functions_in", functions) || !run_script(api, kTracedLinesScript, globals.get()))
        return;
    void* answer = api.PyDict_GetItemString(globals.get(), "answer");  // borrowed
    ptrdiff_t size = 0;
    const char* text = answer != nullptr ? api.PyUnicode_AsUTF8AndSize(answer, &size) : nullptr;
    if (text != nullptr) read_lines({text, size_t(size)}, wanted.answer);
}

void look_up(LookUp& wanted) {
    if (wanted.on_own_thread != nullptr) wanted.on_own_thread();
    Generated generated(wanted.api);
    if (find_names(wanted, generated)) read_generated(wanted, generated);
}

}  // namespace

LiveNames live_names(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader,
                     void (*on_own_thread)()) {
    if (python_free_threaded(api)) return {};
    const auto wanted = std::make_shared<LookUp>(LookUp{api, layout, reader, on_own_thread, {}});
    if (!holds_python_lock(api)) {
        const bool done = on_own_python_thread(api, [wanted] { look_up(*wanted); });
        return done ? std::move(wanted->answer.names) : LiveNames{};
    }
    const PythonLock lock(api);
    auto generated = std::make_unique<Generated>(api);
    if (!find_names(*wanted, *generated) || !python_access().closed()) return std::move(wanted->answer.names);
    // At the end of the program the lock is ours to give up. Where nobody gives it to that thread, the references stay.
    LiveNames names = wanted->answer.names;
    const bool done = on_own_python_thread(api, [wanted, kept = generated.release()] {
        if (wanted->on_own_thread != nullptr) wanted->on_own_thread();
        read_generated(*wanted, *kept);
        delete kept;
    });
    if (!done) return names;
    names.traced = std::move(wanted->answer.names.traced);
    names.kernels = std::move(wanted->answer.names.kernels);
    return names;
}

}  // namespace numsan
