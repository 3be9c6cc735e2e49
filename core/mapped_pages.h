// Memory of mapped files that is not needed for now.
#pragma once

#include <cstddef>

namespace ctk {

// Tells the system that [data, data + bytes) of a MappedFile is not needed for now: it no longer counts as memory of
// this process, and is read again where it is touched. Memory that is of no MappedFile is left alone. Any thread.
void release_pages(const void* data, std::size_t bytes);

}  // namespace ctk
