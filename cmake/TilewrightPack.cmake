# cmake/TilewrightPack.cmake: builds the pack of precompiled CUDA kernels where a trusted NVRTC is found.
#
# NVRTC is a library, not a toolkit: pip's nvidia-cuda-nvrtc is enough, in .venv, in the active environment, or in the
# folder TILEWRIGHT_NVRTC. Without it the library still compiles kernels when first needed.
set(TILEWRIGHT_KERNEL_PACK AUTO CACHE STRING "Build the pack of CUDA kernels: ON, OFF, or AUTO where NVRTC is found")
set_property(CACHE TILEWRIGHT_KERNEL_PACK PROPERTY STRINGS AUTO ON OFF)
set(TILEWRIGHT_NVRTC "" CACHE PATH "Folder of libnvrtc.so.13; empty: look for pip's")
# Left for the tests: TILEWRIGHT_NVRTC_FOLDER, the folder that was found.

add_executable(pack_kernels ${PROJECT_SOURCE_DIR}/tools/pack_kernels.cpp)
target_include_directories(pack_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pack_kernels PRIVATE tilewright tilewright_warnings)

# The newest NVRTC of 13.3 or later; its builtins carry the version in their name.
file(GLOB builtins ${TILEWRIGHT_NVRTC}/libnvrtc-builtins.so.13.*
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.*
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.*)
set(TILEWRIGHT_NVRTC_FOLDER "")
foreach(file IN LISTS builtins)
  string(REGEX MATCH "13\\.[0-9]+" version ${file})
  if(version VERSION_GREATER_EQUAL 13.3 AND (NOT TILEWRIGHT_NVRTC_FOLDER OR version VERSION_GREATER nvrtc_version))
    get_filename_component(TILEWRIGHT_NVRTC_FOLDER ${file} DIRECTORY)
    set(nvrtc_version ${version})
  endif()
endforeach()

if(TILEWRIGHT_KERNEL_PACK STREQUAL "OFF" OR (TILEWRIGHT_KERNEL_PACK STREQUAL "AUTO" AND TILEWRIGHT_SANITIZE))
  message(STATUS "Kernel pack: off")
elseif(TILEWRIGHT_NVRTC_FOLDER)
  message(STATUS "Kernel pack: NVRTC ${nvrtc_version} in ${TILEWRIGHT_NVRTC_FOLDER}")
  set(pack ${PROJECT_BINARY_DIR}/tilewright-sm_90a.pack)
  # The tool keeps a pack that is still of the same sources, compiler and list of kernels.
  add_custom_command(OUTPUT ${pack}
    COMMAND ${CMAKE_COMMAND} -E env TILEWRIGHT_NVRTC=${TILEWRIGHT_NVRTC_FOLDER} $<TARGET_FILE:pack_kernels> ${pack}
    DEPENDS pack_kernels COMMENT "Compiling the kernel pack" VERBATIM USES_TERMINAL)
  add_custom_target(kernel_pack ALL DEPENDS ${pack})
  install(FILES ${pack} DESTINATION share/tilewright)
elseif(TILEWRIGHT_KERNEL_PACK STREQUAL "AUTO")
  message(STATUS "Kernel pack: none, since no NVRTC 13.3 or newer was found (pip install nvidia-cuda-nvrtc)")
else()
  message(FATAL_ERROR "TILEWRIGHT_KERNEL_PACK is ${TILEWRIGHT_KERNEL_PACK}, but no NVRTC 13.3 or newer was found: "
    "pip install nvidia-cuda-nvrtc into .venv, or set TILEWRIGHT_NVRTC to its folder")
endif()
