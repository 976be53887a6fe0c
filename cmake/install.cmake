# What a host needs: the library, the headers, a pkg-config file and a CMake package. All of them find each other
# relative to their own place, so the same files serve a system prefix and the `oga` folder of a Python wheel.
set(OGA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/oga)
if(SKBUILD)
  set(CMAKE_INSTALL_LIBDIR lib)
  set(OGA_PACKAGE_DIR lib/cmake/oga)
endif()
file(RELATIVE_PATH OGA_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(RELATIVE_PATH OGA_PREFIX_FROM_CMAKE /${OGA_PACKAGE_DIR} /)

configure_file(${CMAKE_CURRENT_LIST_DIR}/oga.pc.in ${CMAKE_CURRENT_BINARY_DIR}/oga.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/oga-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/oga-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/oga-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS oga LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT oga)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include COMPONENT oga)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oga.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT oga)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oga-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/oga-config-version.cmake
        DESTINATION ${OGA_PACKAGE_DIR} COMPONENT oga)
