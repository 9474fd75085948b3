#include "interpose/libraries/library_calls.h"

#include "interpose/libraries/cublas/cublas_calls.h"
#include "interpose/libraries/cufft/cufft_calls.h"
#include "interpose/libraries/import_table.h"
#include "interpose/libraries/listened_call.h"
#include "interpose/libraries/nccl/nccl_calls.h"

namespace numsan {

void hear_library_calls(LibraryListener& listener) {
    ListenedCall::listen(&listener);
    replace_imports(cublas::kImports, cublas::kImportCount);
    cublas::find_asked();
    replace_imports(nccl::kImports, nccl::kImportCount);
    nccl::find_asked();
    replace_imports(cufft::kImports, cufft::kImportCount);
}

void end_library_calls() noexcept { ListenedCall::listen(nullptr); }

bool inside_library_call() noexcept { return ListenedCall::is_open(); }

}  // namespace numsan
