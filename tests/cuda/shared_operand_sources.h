// tests/cuda/shared_operand_sources.h: the forward kernel's own sources, rewritten to take P from
// shared memory instead of registers: the same products by another way.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backend/cuda/kernel_source.h"
#include "tilewright/plan.h"

namespace tilewright::cuda {

inline constexpr const char* kConsumerFile = "kernels/attention/hopper_forward_consumer.h";
/// What P of a block needs: 64 rows of a consumer, in panels of 64 keys, from the next multiple of
/// 1024 on.
inline int bytes_of_p(const Tile& tile) {
  const std::int64_t panels = (tile.kv_rows + 63) / 64;
  return static_cast<int>(tile.q_rows * panels * 128 + 1024);
}

// Before the products of multiply_output: P goes to swizzled rows behind all that the kernel keeps
// in shared memory.
inline constexpr const char* kStoreP = R"(
    const unsigned all = (shared_.address + kFootprint.total_bytes() + 1023) / 1024 * 1024;
    const unsigned p = all + index_ * (schedule::panels(kKvRows) * QTile::kPanelBytes);
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
    for (int step = 0; step < kKvRows / 16; ++step) {
      for (int i = 0; i < 4; ++i) {
        const int row = row_in_tile() % 64 + 8 * (i % 2);
        const unsigned to = p + QTile::chunk_offset(row, 2 * step + i / 2) + 4 * (lane_ % 4);
        *reinterpret_cast<unsigned*>(shared_.generic(to)) = probabilities[step][i] ^ FLIPPED;
      }
    }
    fence_async_proxy();
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
    const unsigned long long p_operand = QTile::k_major(p);
)";

// Replaces text that must be there, once.
inline void replace_once(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos)
      << kConsumerFile << " has changed; this test looks for: " << from;
  ASSERT_EQ(text.find(from, at + 1), std::string::npos) << from;
  text.replace(at, from.size(), to);
}

// The kernel's sources, P V rewritten; `flipped` is an expression for bits of P to change.
struct SharedOperandSources {
  std::map<std::string, std::string> texts;
  std::vector<EmbeddedFile> files;

  explicit SharedOperandSources(const std::string& flipped) {
    for (const EmbeddedFile& file : embedded_files()) texts[std::string(file.name)] = file.text;
    std::string& text = texts[kConsumerFile];
    std::string store = kStoreP;
    replace_once(store, "FLIPPED", flipped);
    const std::string v = "const unsigned long long v = KvTile::mn_major(";
    replace_once(text, v, store + "    " + v);
    replace_once(text, "::template registers<Element, true>(", "::template shared<Element, true>(");
    replace_once(text, "output, probabilities[step], v +",
                 "output, p_operand + QTile::k_major_step(step), v +");
    for (const auto& [name, contents] : texts) files.push_back({name, contents});
  }
};

}  // namespace tilewright::cuda
