// Weak references to storages, as StorageApi describes them.
#pragma once

#include <cstdint>

namespace numsan {

void watch(const void* storage);
void unwatch(const void* storage);
bool pin(const void* storage, const void** data, int64_t* bytes);
void unpin(const void* storage);

}  // namespace numsan
