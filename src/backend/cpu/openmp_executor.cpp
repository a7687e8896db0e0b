// src/backend/cpu/openmp_executor.cpp: the default executor, on OpenMP's threads.
#include <omp.h>

#include "tilewright/run.h"

namespace tilewright {
namespace {

class OpenMpExecutor final : public Executor {
 public:
  std::int64_t concurrency() const noexcept override { return omp_get_max_threads(); }

  void run_workers(std::int64_t workers,
                   const std::function<void(std::int64_t worker)>& work) override {
    const int threads = static_cast<int>(workers < concurrency() ? workers : concurrency());
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
    for (std::int64_t worker = 0; worker < workers; ++worker) work(worker);
  }
};

}  // namespace

Executor& default_executor() noexcept {
  static OpenMpExecutor executor;
  return executor;
}

}  // namespace tilewright
