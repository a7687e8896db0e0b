# cmake/TilewrightBuild.cmake: language level, warnings, sanitizers and caches shared by every target.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# One directory for programs, so that tests and people find them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(TILEWRIGHT_CCACHE ccache)
if(TILEWRIGHT_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TILEWRIGHT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TILEWRIGHT_CCACHE})
endif()

set(TILEWRIGHT_SANITIZE "" CACHE STRING "Sanitizers for every target, such as address,undefined or thread")
if(TILEWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=${TILEWRIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TILEWRIGHT_SANITIZE})
endif()
if(TILEWRIGHT_STATIC_RUNTIME)
  add_link_options(-static-libstdc++ -static-libgcc)
  # GCC's OpenMP too; find_package(OpenMP) then takes the archive.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a
    OUTPUT_VARIABLE gomp_archive OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${gomp_archive}")
    set(OpenMP_gomp_LIBRARY ${gomp_archive} CACHE FILEPATH "GCC's OpenMP library" FORCE)
  endif()
endif()

# Warnings for our own code alone.
add_library(tilewright_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(no_false_alarms -Wno-restrict)  # GCC 12 warns of its own string concatenation.
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TILEWRIGHT_SANITIZE)
  list(APPEND no_false_alarms -Wno-maybe-uninitialized)  # GCC warns of <regex> and others when instrumented.
endif()
target_compile_options(tilewright_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wno-psabi ${no_false_alarms})
if(TILEWRIGHT_WERROR)
  target_compile_options(tilewright_warnings INTERFACE -Werror)
endif()
