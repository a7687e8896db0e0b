// tilewright/tilewright.h: the whole public C++ interface, in reading order.
#pragma once

#include "tilewright/attention.h"  // IWYU pragma: export  the problem
#include "tilewright/dtype.h"      // IWYU pragma: export  element types
#include "tilewright/machine.h"    // IWYU pragma: export  the device as data
#include "tilewright/mask.h"       // IWYU pragma: export  causal and window masks
#include "tilewright/plan.h"       // IWYU pragma: export  how it will be computed, and why
#include "tilewright/run.h"        // IWYU pragma: export  computing it
#include "tilewright/status.h"     // IWYU pragma: export  outcomes as values
#include "tilewright/tensor.h"     // IWYU pragma: export  strides and alignment
#include "tilewright/traffic.h"    // IWYU pragma: export  bytes moved
#include "tilewright/version.h"    // IWYU pragma: export
