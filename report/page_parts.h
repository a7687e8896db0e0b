// report/page_parts.h: the files of report/page/, embedded by the build.
#pragma once

#include <string_view>

namespace tilewright::report {

extern const std::string_view kPageHtml;
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;  ///< the .js files, one after the other

}  // namespace tilewright::report
