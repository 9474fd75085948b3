// Runs the name-finding code in the interpreter and reads its answer.
#include "interpose/python/names.h"

#include <charconv>
#include <exception>
#include <string_view>
#include <utility>

#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/frame_locals.h"
#include "interpose/python/live_objects.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

/// Reads a number in hexadecimal and the blank behind it off the front of a line.
bool take(std::string_view& rest, uintptr_t& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, 16);
    if (error != std::errc() || end == rest.data() + rest.size()) return false;
    rest.remove_prefix(size_t(end - rest.data()) + 1);
    return true;
}

/// Null where there is none.
const void* take_address(std::string_view& rest) {
    uintptr_t address = 0;
    return take(rest, address) ? reinterpret_cast<const void*>(address) : nullptr;
}

/// What is read of the answer, line by line.
struct Answer {
    LiveNames names;
    std::map<uintptr_t, std::vector<SourceFrame>> stacks;  ///< those that lines of generated code name by number
};

/// A frame, or a line of generated code: see scripts/traced_lines.py.
void read_traced(char letter, std::string_view line, Answer& answer) {
    uintptr_t stack = 0, number = 0, module = 0;
    if (!take(line, stack) || !take(line, number)) return;
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

/// A tensor that the code holds alive.
LiveNames::TensorName tensor_name(const std::string& name, LiveNames::TensorName::Role role, const void* impl,
                                  const TensorReader& reader) {
    return {name, role, reader.storage_of != nullptr ? reader.storage_of(impl) : nullptr};
}

/// That of a tensor that the code holds alive; nothing holds the gradient itself.
void read_gradient(const std::string& name, const void* leaf, const TensorReader& reader, LiveNames& names) {
    const void* gradient = reader.gradient_of != nullptr ? reader.gradient_of(leaf) : nullptr;
    if (gradient == nullptr) return;
    const void* storage = reader.gradients_rest && reader.storage_of != nullptr ? reader.storage_of(gradient) : nullptr;
    const LiveNames::TensorName name_of_gradient{name, LiveNames::TensorName::Role::Gradient, storage, leaf};
    const auto [known, fresh] = names.tensors.emplace(gradient, name_of_gradient);
    if (!fresh && known->second.role == name_of_gradient.role)
        known->second = name_of_gradient;  // one that died meanwhile lay there
}

/// One line of the answer: a letter, a blank, an address, a blank, a name.
void read_line(std::string_view line, const TensorReader& reader, Answer& answer) {
    using Role = LiveNames::TensorName::Role;
    if (line.size() < 4 || line[1] != ' ') return;
    const char letter = line[0];
    line.remove_prefix(2);
    if (letter == 'f' || letter == 'c') return read_traced(letter, line, answer);
    LiveNames& names = answer.names;
    const void* key = take_address(line);
    if (key == nullptr) return;
    const std::string name(line);
    switch (letter) {
        case 'm': names.modules.emplace(key, name); break;
        case 'p':
            names.tensors.insert_or_assign(key, tensor_name(name, Role::Parameter, key, reader));
            read_gradient(name, key, reader, names);
            break;
        case 'b': names.tensors.emplace(key, tensor_name(name, Role::Buffer, key, reader)); break;
        case 'o': names.tensors.emplace(key, tensor_name(name, Role::OptimizerState, key, reader)); break;
        default: break;
    }
}

struct LookUp {
    const PythonApi& api;
    const PythonLayout* layout;
    const TensorReader& reader;
    void (*on_own_thread)();
    Answer answer;
};

void look_up(LookUp& wanted) {
    const PythonApi& api = wanted.api;
    const Reference globals(api, api.PyDict_New());
    const Reference alive(api, live_objects_function(api));
    const Reference locals_of(api, frame_locals_function(api, wanted.layout));
    if (globals.get() == nullptr || alive.get() == nullptr || locals_of.get() == nullptr) return;
    if (api.PyDict_SetItemString(globals.get(), "alive", alive.get()) != 0) return;
    if (api.PyDict_SetItemString(globals.get(), "locals_of", locals_of.get()) != 0) return;
    if (!run_script(api, kTracedLinesScript, globals.get())) return;
    if (!run_script(api, kLiveNamesScript, globals.get())) return;
    void* answer = api.PyDict_GetItemString(globals.get(), "answer");  // borrowed
    ptrdiff_t size = 0;
    const char* text = answer != nullptr ? api.PyUnicode_AsUTF8AndSize(answer, &size) : nullptr;
    if (text == nullptr) return;
    std::string_view rest(text, size_t(size));
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        read_line(rest.substr(0, end), wanted.reader, wanted.answer);
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
}

void run_look_up(void* argument) {
    auto& wanted = *static_cast<LookUp*>(argument);
    if (wanted.on_own_thread != nullptr) wanted.on_own_thread();
    try {
        look_up(wanted);
    } catch (const std::exception&) {
        wanted.answer = {};  // out of memory
    }
}

}  // namespace

LiveNames live_names(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader,
                     void (*on_own_thread)()) {
    LookUp wanted{api, layout, reader, on_own_thread, {}};
    on_own_python_thread(api, run_look_up, &wanted);
    return std::move(wanted.answer.names);
}

}  // namespace numsan
