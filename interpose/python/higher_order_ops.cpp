#include "interpose/python/higher_order_ops.h"

#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/scripts.h"

namespace numsan {
bool pass_higher_order_ops(const PythonApi& api) {
    const PythonLock lock(api);
    const Reference globals(api, api.PyDict_New());
    return globals.get() != nullptr && run_script(api, kWhenThereScript, globals.get()) &&
           run_script(api, kHigherOrderOpsScript, globals.get());
}

}  // namespace numsan
