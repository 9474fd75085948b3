// Weak references to storages, as StorageApi describes them.
#pragma once

#include <cstdint>

namespace numsan {

void watch(const void* storage);
void unwatch(const void* storage);
bool borrow(const void* storage, const void** data, int64_t* bytes);
void give_back(const void* storage);

}  // namespace numsan
