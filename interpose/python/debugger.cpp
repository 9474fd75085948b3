#include "interpose/python/debugger.h"

#include <algorithm>
#include <cstdint>

#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

const DebuggerHost* g_host = nullptr;

void* bytes_of(const PythonApi& api, const std::string& text) {
    return api.PyBytes_FromStringAndSize(text.data(), ptrdiff_t(text.size()));
}

void* history(void*, void* arguments) {
    const PythonApi& api = *python_api();
    const void* storage = api.PyLong_AsVoidPtr(api.PyTuple_GetItem(arguments, 0));
    api.PyErr_Clear();
    return api.Py_BuildValue("s", g_host->history(storage).c_str());
}

void* pause(void*, void* arguments) {
    const PythonApi& api = *python_api();
    return api.PyBool_FromLong(g_host->pause(api.PyObject_IsTrue(api.PyTuple_GetItem(arguments, 0)) == 1) ? 1 : 0);
}

void* again(void*, void* arguments) {
    const PythonApi& api = *python_api();
    ptrdiff_t size = 0;
    const char* place = api.PyUnicode_AsUTF8AndSize(api.PyTuple_GetItem(arguments, 0), &size);
    if (place == nullptr) return nullptr;
    g_host->again({place, size_t(size)});
    return api.Py_BuildValue("");
}

void* dump(void*, void* arguments) {
    const PythonApi& api = *python_api();
    const char* given = api.PyBytes_AsString(api.PyTuple_GetItem(arguments, 0));
    if (given == nullptr) return nullptr;
    const std::string path = given;
    void* const thread = api.PyEval_SaveThread();  // gigabytes take seconds
    const std::string problem = g_host->dump(path);
    api.PyEval_RestoreThread(thread);
    return bytes_of(api, problem);
}

PythonMethod g_methods[] = {{"core_history", history, kArgumentTuple, nullptr},
                            {"core_pause", pause, kArgumentTuple, nullptr},
                            {"core_again", again, kArgumentTuple, nullptr},
                            {"core_dump", dump, kArgumentTuple, nullptr}};

/// What values_of() in the script takes: the address of a tensor, or a tuple that says what the value is.
class Parts {
  public:
    /// `tensors` as in DebuggerStop.
    Parts(const PythonApi& api, const HeldCall* held, const std::vector<const void*>& tensors)
        : api_(api), held_(held), tensors_(tensors) {}

    /// A list, owned by the caller; null: an error is set.
    void* list(const HeldValue* values, int32_t count) {
        void* parts = api_.PyList_New(0);
        for (int32_t at = 0; at < count && parts != nullptr;) add(parts, values, count, at);
        return parts;
    }

    /// Of what was not kept: tensors only.
    void* list() {
        void* parts = api_.PyList_New(0);
        for (const void* tensor : tensors_) append(parts, live(tensor));
        return parts;
    }

  private:
    void* live(const void* tensor) { return api_.PyLong_FromVoidPtr(const_cast<void*>(tensor)); }

    void append(void* parts, void* part) {
        const Reference owned(api_, part);
        if (part == nullptr || parts == nullptr || api_.PyList_Append(parts, part) != 0) api_.PyErr_Clear();
    }

    void add(void* parts, const HeldValue* values, int32_t count, int32_t& at) {
        const HeldValue& value = values[at++];
        if (value.kind != HeldKind::List) return append(parts, part_of(value));
        void* items = api_.PyList_New(0);
        for (int64_t i = 0; i < value.items && at < count; ++i) add(items, values, count, at);
        append(parts, api_.Py_BuildValue("(sN)", "list", items));
    }

    void* part_of(const HeldValue& value) {
        if (std::find(tensors_.begin(), tensors_.end(), value.impl) != tensors_.end()) return live(value.impl);
        switch (value.kind) {
            case HeldKind::Tensor:
                if (value.overwritten) break;
                return api_.Py_BuildValue("(sLi)", "kept", static_cast<long long>(reinterpret_cast<intptr_t>(held_)),
                                          static_cast<int>(value.tensor));
            case HeldKind::Number: return api_.Py_BuildValue("(sd)", "value", value.number);
            case HeldKind::Integer: return api_.Py_BuildValue("(sL)", "value", static_cast<long long>(value.integer));
            case HeldKind::Bool: return api_.Py_BuildValue("(sN)", "value", api_.PyBool_FromLong(long(value.integer)));
            case HeldKind::Complex: {
                struct {
                    double real, imaginary;
                } number{value.number, value.imaginary};
                return api_.Py_BuildValue("(sD)", "value", &number);
            }
            case HeldKind::String:
            case HeldKind::DType:
            case HeldKind::Device:
            case HeldKind::Layout:
            case HeldKind::MemoryFormat:
            case HeldKind::Generator:
                return api_.Py_BuildValue("(ss)", value.kind == HeldKind::String ? "value" : "name",
                                          value.text != nullptr ? value.text : "");
            default: break;
        }
        return api_.Py_BuildValue("(s)", "none");
    }

    const PythonApi& api_;
    const HeldCall* const held_;
    const std::vector<const void*>& tensors_;
};

void* inputs_of(const PythonApi& api, const DebuggerStop& stop) {
    Parts parts(api, stop.held, stop.inputs);
    return stop.view != nullptr ? parts.list(stop.view->arguments, stop.view->argument_count) : parts.list();
}

void* outputs_of(const PythonApi& api, const DebuggerStop& stop) {
    Parts parts(api, stop.held, stop.outputs);
    return stop.view != nullptr ? parts.list(stop.view->results, stop.view->result_count) : parts.list();
}

}  // namespace

Debugger* Debugger::start(const PythonApi& api, const DebuggerHost& host, const std::string& replay) {
    g_host = &host;
    const PythonLock lock(api);
    const Reference globals(api, api.PyDict_New());
    const Reference program(api, bytes_of(api, replay));
    if (globals.get() == nullptr || program.get() == nullptr ||
        api.PyDict_SetItemString(globals.get(), "core_replay", program.get()) != 0)
        return nullptr;
    for (PythonMethod& method : g_methods) {
        const Reference function(api, api.PyCFunction_NewEx(&method, nullptr, nullptr));
        if (function.get() == nullptr || api.PyDict_SetItemString(globals.get(), method.name, function.get()) != 0)
            return nullptr;
    }
    if (!run_script(api, kStoppedScript, globals.get()) || !run_script(api, kDebuggerScript, globals.get()))
        return nullptr;
    void* const object = api.PyDict_GetItemString(globals.get(), "debugger");  // borrowed
    if (object == nullptr) return nullptr;
    api.Py_IncRef(object);
    return new Debugger(api, object);
}

DebuggerError Debugger::call(const char* method, const DebuggerStop& stop, bool* answer) const {
    const PythonLock lock(api_);
    const Reference result(
        api_, api_.PyObject_CallMethod(object_, method, "(NiiNNNNNO)", bytes_of(api_, stop.file), stop.line, stop.frame,
                                       bytes_of(api_, stop.place), bytes_of(api_, stop.text),
                                       bytes_of(api_, stop.document), inputs_of(api_, stop), outputs_of(api_, stop),
                                       Reference(api_, api_.PyBool_FromLong(stop.scaled ? 1 : 0)).get()));
    if (answer != nullptr) *answer = result.get() == nullptr || api_.PyObject_IsTrue(result.get()) == 1;
    DebuggerError error;
    if (result.get() != nullptr) return error;
    api_.PyErr_Fetch(&error.type, &error.value, &error.traceback);
    api_.PyErr_NormalizeException(&error.type, &error.value, &error.traceback);
    // Its frames are numsan's own: the traceback begins where the operator was called.
    api_.Py_DecRef(error.traceback);
    error.traceback = nullptr;
    if (error.value != nullptr) {
        const Reference shown(api_, api_.PyObject_CallMethod(error.value, "__str__", nullptr));
        ptrdiff_t size = 0;
        const char* text = shown.get() != nullptr ? api_.PyUnicode_AsUTF8AndSize(shown.get(), &size) : nullptr;
        if (text != nullptr) error.text.assign(text, size_t(size));
        api_.PyErr_Clear();
    }
    return error;
}

bool Debugger::anybody_there() const {
    const PythonLock lock(api_);
    const Reference answer(api_, api_.PyObject_CallMethod(object_, "anybody_there", nullptr));
    if (answer.get() == nullptr) api_.PyErr_Clear();
    return answer.get() != nullptr && api_.PyObject_IsTrue(answer.get()) == 1;
}

DebuggerError Debugger::stop(const DebuggerStop& stop, bool& stopped) const { return call("stop", stop, &stopped); }

DebuggerError Debugger::raise(const DebuggerStop& stop) const { return call("fail", stop, nullptr); }

void Debugger::drop(DebuggerError& error) const {
    const PythonLock lock(api_);
    for (void* object : {error.type, error.value, error.traceback}) api_.Py_DecRef(object);
    error = {};
}

}  // namespace numsan
