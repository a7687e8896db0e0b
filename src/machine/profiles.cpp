// src/machine/profiles.cpp: the device profiles that travel inside the library.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tilewright/machine.h"

namespace tilewright {
namespace {

struct Profile {
  std::string_view id;
  std::string_view toml;
};

constexpr Profile kProfiles[] = {
#include "embedded_profiles.inc"
};

/// Edits that turn one word into another.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Ids that contain what was asked for, or are a few edits away.
std::vector<std::string> near(std::string_view asked) {
  std::vector<std::string> ids;
  for (const Profile& profile : kProfiles) {
    const bool part = !asked.empty() && profile.id.find(asked) != std::string_view::npos;
    if (part || distance(profile.id, asked) <= 2) ids.emplace_back(profile.id);
  }
  return ids;
}

}  // namespace

std::vector<std::string> machine_profile_ids() {
  std::vector<std::string> ids;
  for (const Profile& profile : kProfiles) ids.emplace_back(profile.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<Machine> machine_profile(std::string_view id) {
  for (const Profile& profile : kProfiles) {
    if (profile.id == id) return parse_machine(profile.toml, id);
  }
  const std::vector<std::string> guesses = near(id);
  return Status{
      StatusCode::invalid_argument,
      fmt::format("device is \"{}\", which is no profile{}; accepted: {}", id.substr(0, 64),
                  guesses.empty() ? "" : " (did you mean " + joined(guesses) + "?)",
                  joined(machine_profile_ids()))};
}

}  // namespace tilewright
