// Weak references to storages, as StorageApi describes them.
#pragma once

namespace numsan {

void watch(const void* storage);
void unwatch(const void* storage);
bool borrow(const void* storage);
void give_back(const void* storage);

}  // namespace numsan
