// src/backend/cpu/task_queue.h: hands out a call's tasks to workers, one at a time, in order.
#pragma once

#include <atomic>
#include <exception>
#include <functional>

#include "schedule/mask_rule.h"
#include "tilewright/run.h"

namespace tilewright::cpu {

/// The threads of one call.
struct Workers {
  schedule::Index count = 1;
  Executor* executor = nullptr;  ///< null: the calling thread alone
};

/// Calls work(task, worker) once for each task in [0, tasks). Worker 0 reports the fraction done to
/// progress, which may be empty, and the caller the end, when all have ended. The first exception
/// of any of them is thrown here, after all have ended.
template <class Work>
void run_tasks(const Workers& workers, schedule::Index tasks,
               const std::function<void(double)>& progress, const Work& work) {
  std::atomic<schedule::Index> next{0};
  std::atomic_flag failed;
  std::exception_ptr error;
  const auto drain = [&](std::int64_t worker) {
    try {
      for (schedule::Index task = next++; task < tasks; task = next++) {
        work(task, worker);
        const schedule::Index begun = next;
        if (worker == 0 && progress && begun < tasks) {
          progress(static_cast<double>(begun) / static_cast<double>(tasks));
        }
      }
    } catch (...) {
      next = tasks;
      if (!failed.test_and_set()) error = std::current_exception();
    }
  };
  if (workers.executor != nullptr) {
    workers.executor->run_workers(workers.count, drain);
  } else {
    drain(0);
  }
  if (error) std::rethrow_exception(error);
  if (progress) progress(1);
}

}  // namespace tilewright::cpu
