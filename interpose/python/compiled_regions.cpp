#include "interpose/python/compiled_regions.h"

#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/scripts.h"

namespace numsan {
bool look_into_compiled_regions(const PythonApi& api) {
    const PythonLock lock(api);
    const Reference globals(api, api.PyDict_New());
    return globals.get() != nullptr && run_script(api, kWhenThereScript, globals.get()) &&
           run_script(api, kRegionGraphsScript, globals.get()) &&
           run_script(api, kCompiledRegionsScript, globals.get()) &&
           run_script(api, kCompiledPackagesScript, globals.get());
}

}  // namespace numsan
