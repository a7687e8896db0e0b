// cli/files/buffer.h: zeroed memory for an array, whose failure to be allocated is a Status.
#pragma once

#include <cstddef>
#include <memory>

#include "tilewright/status.h"

namespace tilewright::files {

/// Page-aligned zeroed memory, freed by the last owner. Pages take up memory when first written.
Result<std::shared_ptr<std::byte>> zeroed_buffer(std::size_t bytes);

}  // namespace tilewright::files
