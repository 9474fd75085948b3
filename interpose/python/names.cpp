// Runs the name-finding code in the interpreter and reads its answer.
#include "interpose/python/names.h"

#include <charconv>
#include <memory>
#include <string_view>

namespace numsan {
namespace {

constexpr char kCode[] =
#include "interpose/python/live_names.inc"
    ;
constexpr int kFileInput = 257;  // Py_file_input

/// One line of the answer: a letter, a blank, an address in hexadecimal, a blank, a name.
void read_line(std::string_view line, StackSource::StorageOf storage_of, LiveNames& names) {
    using Role = LiveNames::TensorName::Role;
    if (line.size() < 4 || line[1] != ' ') return;
    uintptr_t address = 0;
    const auto [end, error] = std::from_chars(line.data() + 2, line.data() + line.size(), address, 16);
    if (error != std::errc() || end == line.data() + line.size()) return;
    const void* key = reinterpret_cast<const void*>(address);
    const std::string name(end + 1, line.data() + line.size());
    // Only Python objects hold these alive for sure, and those need the lock, which is ours now, to go; a gradient is
    // C++'s to drop.
    const auto storage = [&] { return storage_of != nullptr ? storage_of(key) : nullptr; };
    switch (line[0]) {
        case 'm': names.modules.emplace(key, name); break;
        case 'p': names.tensors.insert_or_assign(key, LiveNames::TensorName{name, Role::Parameter, storage()}); break;
        case 'b': names.tensors.emplace(key, LiveNames::TensorName{name, Role::Buffer, storage()}); break;
        case 'g': names.tensors.emplace(key, LiveNames::TensorName{name, Role::Gradient, nullptr}); break;
        case 'o': names.tensors.emplace(key, LiveNames::TensorName{name, Role::OptimizerState, storage()}); break;
        default: break;
    }
}

struct Raised {
    const PythonApi* api;
    void* error[3];
};

int raise_again(void* raised) {
    const std::unique_ptr<Raised> owner(static_cast<Raised*>(raised));
    owner->api->PyErr_Restore(owner->error[0], owner->error[1], owner->error[2]);
    return -1;
}

/// Python runs signal handlers wherever it is, also in our code: what they raise is the program's.
void hand_on_what_a_signal_raised(const PythonApi& api) {
    auto raised = std::make_unique<Raised>(Raised{&api, {}});
    api.PyErr_Fetch(&raised->error[0], &raised->error[1], &raised->error[2]);
    const bool foreign = raised->error[0] != nullptr &&
                         api.PyErr_GivenExceptionMatches(raised->error[0], *api.PyExc_Exception) == 0;
    if (foreign && api.Py_AddPendingCall(raise_again, raised.get()) == 0) {
        static_cast<void>(raised.release());
        return;
    }
    for (void* object : raised->error) api.Py_DecRef(object);
}

}  // namespace

LiveNames live_names(const PythonApi& api, StackSource::StorageOf storage_of) {
    LiveNames names;
    const PythonLock lock(api);
    void* globals = api.PyDict_New();
    // Not PyRun_String: it forgets that an interrupt ended the program, and with it the exit status.
    void* code = globals ? api.Py_CompileString(kCode, "<numsan>", kFileInput) : nullptr;
    void* done = code ? api.PyEval_EvalCode(code, globals, globals) : nullptr;
    void* answer = done ? api.PyDict_GetItemString(globals, "answer") : nullptr;  // borrowed
    ptrdiff_t size = 0;
    const char* text = answer ? api.PyUnicode_AsUTF8AndSize(answer, &size) : nullptr;
    if (text) {
        std::string_view rest(text, size_t(size));
        while (!rest.empty()) {
            const size_t end = rest.find('\n');
            read_line(rest.substr(0, end), storage_of, names);
            rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
        }
    }
    hand_on_what_a_signal_raised(api);
    api.Py_DecRef(done);
    api.Py_DecRef(code);
    api.Py_DecRef(globals);
    return names;
}

}  // namespace numsan
