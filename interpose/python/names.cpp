// Runs the name-finding code in the interpreter and reads its answer.
#include "interpose/python/names.h"

#include <charconv>
#include <string_view>

namespace numsan {
namespace {

constexpr char kCode[] =
#include "interpose/python/live_names.inc"
    ;
constexpr int kFileInput = 257;  // Py_file_input

/// One line of the answer: a letter, a blank, an address in hexadecimal, a blank, a name.
void read_line(std::string_view line, LiveNames& names) {
    using Role = LiveNames::TensorName::Role;
    if (line.size() < 4 || line[1] != ' ') return;
    uintptr_t address = 0;
    const auto [end, error] = std::from_chars(line.data() + 2, line.data() + line.size(), address, 16);
    if (error != std::errc() || end == line.data() + line.size()) return;
    const void* key = reinterpret_cast<const void*>(address);
    const std::string name(end + 1, line.data() + line.size());
    switch (line[0]) {
        case 'm': names.modules.emplace(key, name); break;
        case 'p': names.tensors.insert_or_assign(key, LiveNames::TensorName{name, Role::Parameter}); break;
        case 'b': names.tensors.emplace(key, LiveNames::TensorName{name, Role::Buffer}); break;
        case 'g': names.tensors.emplace(key, LiveNames::TensorName{name, Role::Gradient}); break;
        case 'o': names.tensors.emplace(key, LiveNames::TensorName{name, Role::OptimizerState}); break;
        default: break;
    }
}

}  // namespace

LiveNames live_names(const PythonApi& api) {
    LiveNames names;
    const PythonLock lock(api);
    void* globals = api.PyDict_New();
    void* done = globals ? api.PyRun_StringFlags(kCode, kFileInput, globals, globals, nullptr) : nullptr;
    void* answer = done ? api.PyDict_GetItemString(globals, "answer") : nullptr;  // borrowed
    ptrdiff_t size = 0;
    const char* text = answer ? api.PyUnicode_AsUTF8AndSize(answer, &size) : nullptr;
    if (text) {
        std::string_view rest(text, size_t(size));
        while (!rest.empty()) {
            const size_t end = rest.find('\n');
            read_line(rest.substr(0, end), names);
            rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
        }
    }
    api.PyErr_Clear();
    api.Py_DecRef(done);
    api.Py_DecRef(globals);
    return names;
}

}  // namespace numsan
