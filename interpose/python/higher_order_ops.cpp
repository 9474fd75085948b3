#include "interpose/python/higher_order_ops.h"

#include "interpose/python/reference.h"

namespace numsan {
namespace {

constexpr char kCode[] =
#include "interpose/python/higher_order_ops.inc"
    ;
constexpr int kFileInput = 257;  // Py_file_input

}  // namespace

bool pass_higher_order_ops(const PythonApi& api) {
    const PythonLock lock(api);
    const Reference globals(api, api.PyDict_New());
    if (globals.get() == nullptr) return false;
    const Reference code(api, api.Py_CompileString(kCode, "<numsan>", kFileInput));
    if (code.get() == nullptr) return false;
    const Reference done(api, api.PyEval_EvalCode(code.get(), globals.get(), globals.get()));
    return done.get() != nullptr;
}

}  // namespace numsan
