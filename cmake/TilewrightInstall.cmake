# cmake/TilewrightInstall.cmake: what `cmake --install` lays down, and find_package(tilewright).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS tilewright tilewright_shared EXPORT tilewright-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tilewright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT tilewright-targets NAMESPACE tilewright::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
configure_package_config_file(cmake/tilewright-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/tilewright-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tilewright-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tilewright-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tilewright-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
