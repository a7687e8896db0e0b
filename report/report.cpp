// report/report.cpp: fills the page's template.
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "report/data.h"
#include "report/html.h"
#include "report/page_parts.h"
#include "report/tables.h"
#include "report/walk.h"
#include "tilewright/version.h"

namespace tilewright::report {
namespace {

/// Replaces each {{name}} of the template, once: what is put in is not looked at again.
std::string fill(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    if (open == std::string_view::npos) return out.append(text);
    const std::size_t close = text.find("}}", open);
    out.append(text.substr(0, open));
    out += values.at(std::string(text.substr(open + 2, close - open - 2)));
    text.remove_prefix(close + 2);
  }
}

/// A section's tables, which scripts fold away once the figures are drawn.
std::string folded(const std::string& tables) {
  if (tables.empty()) return "";
  return "<details open><summary>As a table</summary>" + tables + "</details>";
}

/// A pair of figures for each side that was varied.
std::string sweep_section(const std::vector<SweepPoint>& sweep) {
  if (sweep.empty()) return "";
  std::string figures;
  std::vector<std::string> seen;
  for (const SweepPoint& point : sweep) {
    if (std::find(seen.begin(), seen.end(), point.varied) != seen.end()) continue;
    figures += fmt::format(
        "<figure class=\"sweep-time\" id=\"fig-sweep-time-{0}\" data-varied=\"{1}\"></figure>"
        "<figure class=\"sweep-bytes\" id=\"fig-sweep-bytes-{0}\" data-varied=\"{1}\"></figure>\n",
        seen.size(), escape(point.varied));
    seen.push_back(point.varied);
  }
  return "<section aria-labelledby=\"sweep-title\">\n<h2 id=\"sweep-title\">Other tiles</h2>\n"
         "<p>Small tiles pay their overhead often and fetch keys again and again. Large ones do "
         "not "
         "fit: past the line they are refused.</p>\n<div class=\"pair wide\">\n" +
         figures + "</div>\n" + folded(sweep_table(sweep)) + "</section>\n";
}

}  // namespace

std::string page(const Contents& contents) {
  const Entry& subject = contents.entries.at(contents.subject);
  const std::optional<Walk> walk = make_walk(subject.plan, contents.score);
  const auto command = contents.command.empty() ? ""
                                                : fmt::format("<pre class=\"command\">{}</pre>",
                                                              escape(contents.command));
  return fill(kPageHtml,
              {{"style", std::string(kPageStyle)},
               {"script", std::string(kPageScript)},
               {"data", page_data(contents, walk)},
               {"heading", escape(contents.heading)},
               {"command", command},
               {"machine", escape(contents.machine.name)},
               {"version", escape(version())},
               {"cards", comparison_cards(contents)},
               {"walk_table", folded(walk_table(walk))},
               {"machine_table", folded(machine_table(contents))},
               {"measurements_table", folded(measurements_table(contents))},
               {"plan_list", plan_list(subject.plan)},
               {"plan_tables", folded(footprint_table(subject.plan) + traffic_table(subject.plan) +
                                      time_table(subject))},
               {"sweep", sweep_section(contents.sweep)}});
}

}  // namespace tilewright::report
