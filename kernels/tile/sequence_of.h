// kernels/tile/sequence_of.h: where a sequence lies, from lengths that are fixed or read on the
// device.
#pragma once

#include "kernels/attention/hopper_forward_params.h"
#include "schedule/sequence.h"

namespace tilewright::kernels {

inline schedule::Sequence sequence_of(const SequenceLengths& lengths, int batch) {
  switch (lengths.kind) {
    case LengthKind::per_sequence:
      return schedule::padded_sequence(lengths.values, batch, lengths.bound);
    case LengthKind::cumulative:
      return schedule::packed_sequence(lengths.values, batch, lengths.bound, lengths.total_rows);
    case LengthKind::fixed:
      break;
  }
  return {0, lengths.bound};
}

/// Where a batch entry lies in its operand: packed operands have one.
inline int operand_batch(const SequenceLengths& lengths, int batch) {
  return lengths.kind == LengthKind::cumulative ? 0 : batch;
}

}  // namespace tilewright::kernels
