// report/report.cpp: fills the page's template.
#include "report/report.h"

#include <fmt/format.h>

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

std::string sweep_section(const std::optional<Sweep>& sweep) {
  if (!sweep) return "";
  return "<section aria-labelledby=\"sweep-title\">\n<h2 id=\"sweep-title\">Other tiles</h2>\n"
         "<p>Small tiles pay their overhead often and fetch keys again and again. Large ones do "
         "not "
         "fit.</p>\n<div class=\"pair\"><figure id=\"fig-sweep\"></figure><figure "
         "id=\"fig-sweep-bytes\"></figure></div>\n" +
         folded(sweep_table(sweep)) + "</section>\n";
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
