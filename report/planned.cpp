// report/planned.cpp: plans the schedules that a run did not time.
#include "report/planned.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/html.h"

namespace tilewright::report {

std::string describe(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  std::string tokens = count_text(problem.kv_len());
  if (problem.q_len() != problem.kv_len()) {
    tokens = fmt::format("{} queries and {}", count_text(problem.q_len()), tokens);
  }
  std::string heads = spec.heads == 1 ? "one head" : fmt::format("{} heads", spec.heads);
  if (spec.kv_heads != spec.heads) heads += fmt::format(" over {} kv heads", spec.kv_heads);
  if (spec.batch != 1) heads += fmt::format(" in each of {} sequences", spec.batch);
  return fmt::format("Attention over {} tokens: {} of dim {}, {}{}", tokens, heads, spec.qk_dim,
                     name(spec.dtype), spec.mask.causal ? ", causal" : "");
}

std::string series_name(Schedule schedule) {
  switch (schedule) {
    case Schedule::q_outer:
      return "tiled";
    case Schedule::kv_outer:
      return "tiled, keys outside";
    case Schedule::standard:
      return "standard";
  }
  return "unknown";
}

AttentionSpec at_length(const AttentionSpec& spec, std::int64_t tokens) {
  AttentionSpec out = spec;
  const bool square = spec.q_lengths.max_tokens == spec.kv_lengths.max_tokens;
  out.kv_lengths = {.max_tokens = tokens};
  out.q_lengths = {.max_tokens = square ? tokens : spec.q_lengths.max_tokens};
  for (Operand* operand : {&out.q, &out.k, &out.v, &out.o}) operand->strides.reset();
  return out;
}

std::vector<std::int64_t> lengths_around(std::int64_t tokens) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = std::max<std::int64_t>(tokens / 8, 1); length < tokens; length *= 2) {
    if (length >= 64) lengths.push_back(length);
  }
  for (const std::int64_t times : {1, 2, 4}) lengths.push_back(tokens * times);
  return lengths;
}

void add_planned(Contents& contents, const std::vector<std::int64_t>& lengths) {
  const std::size_t given = contents.entries.size();
  const AttentionSpec spec = contents.entries.at(contents.subject).plan.problem.spec();
  for (const Schedule schedule : {Schedule::q_outer, Schedule::standard}) {
    const std::string series = series_name(schedule);
    for (const std::int64_t tokens : lengths) {
      const bool known =
          std::any_of(contents.entries.begin(), contents.entries.end(), [&](const Entry& entry) {
            return entry.series == series && entry.plan.problem.kv_len() == tokens;
          });
      const auto problem = AttentionProblem::create(at_length(spec, tokens));
      if (known || !problem.ok()) continue;
      PlanOptions options;
      options.schedule = schedule;
      const auto plan = tilewright::plan(*problem, contents.machine, options);
      if (plan.ok()) contents.entries.push_back({series, *plan, std::nullopt, std::nullopt});
    }
  }
  // The series in the order they came, each by length.
  std::vector<std::string> order;
  for (const Entry& entry : contents.entries) {
    if (std::find(order.begin(), order.end(), entry.series) == order.end()) {
      order.push_back(entry.series);
    }
  }
  std::vector<std::size_t> index(contents.entries.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = i;
  std::stable_sort(index.begin(), index.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t i) {
      const Entry& entry = contents.entries[i];
      return std::pair(std::find(order.begin(), order.end(), entry.series) - order.begin(),
                       entry.plan.problem.kv_len());
    };
    return rank(a) < rank(b);
  });
  std::vector<Entry> entries;
  std::size_t subject = given;
  for (const std::size_t i : index) {
    if (i == contents.subject) subject = entries.size();
    entries.push_back(std::move(contents.entries[i]));
  }
  contents.subject = subject;
  contents.entries = std::move(entries);
}

}  // namespace tilewright::report
