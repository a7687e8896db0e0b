// src/backend/cpu/target_begin.h: what an instruction set's file includes before it chooses its
// target.
//
// Everything that is not of one instruction set is included here, before the target's attributes
// are in force, so that no inline function shared with other files is compiled for it.
#pragma once

// Not used here, so not needed of the CPU.
#define HWY_DISABLE_PCLMUL_AES
#include <hwy/detect_targets.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/half.h"
#include "backend/cpu/kernels.h"
