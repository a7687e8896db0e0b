# report/embed.cmake: writes page_parts.cpp from the page's files.
#   cmake -D OUT=... -D HTML=... -D STYLE=... -D SCRIPTS=a.js|b.js -P embed.cmake
string(REPLACE "|" ";" SCRIPTS "${SCRIPTS}")
foreach(file IN LISTS SCRIPTS)
  file(READ "${file}" text)
  string(APPEND script "${text}")
endforeach()
file(READ "${HTML}" html)
file(READ "${STYLE}" style)
file(WRITE "${OUT}" "// Made by report/embed.cmake from the files of report/page/.
#include \"report/page_parts.h\"
namespace tilewright::report {
const std::string_view kPageHtml = R\"page(${html})page\";
const std::string_view kPageStyle = R\"page(${style})page\";
const std::string_view kPageScript = R\"page(${script})page\";
}  // namespace tilewright::report
")
