/* What CUDA_INJECTION64_PATH names: the driver calls InitializeInjection when it starts. */
#include <stdio.h>
#include <stdlib.h>

int InitializeInjection(void) {
    const char* path = getenv("MARK");
    FILE* file = path == NULL ? NULL : fopen(path, "w");
    if (file != NULL) fclose(file);
    return 1;
}
