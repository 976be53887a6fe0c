# What a host needs: the library, the headers, a pkg-config file and a CMake package. All of them find each other
# relative to their own place, so the same files serve a system prefix and the `oga` folder of a Python wheel.
set(OGA_LIBRARY_DIR ${CMAKE_INSTALL_LIBDIR})
set(OGA_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR})
if(SKBUILD)
  set(OGA_LIBRARY_DIR _native/lib)
  set(OGA_CONFIG_DIR lib)
endif()
if(SKBUILD_STATE STREQUAL "editable")
  set(OGA_LIBRARY_DIR ${PROJECT_SOURCE_DIR}/oga/_native/lib)  # beside the Python sources, which are used in place
endif()
file(RELATIVE_PATH OGA_PREFIX_FROM_PKGCONFIG /${OGA_CONFIG_DIR}/pkgconfig /)
file(RELATIVE_PATH OGA_PREFIX_FROM_CMAKE /${OGA_CONFIG_DIR}/cmake/oga /)
string(REGEX REPLACE "/$" "" OGA_PREFIX_FROM_PKGCONFIG ${OGA_PREFIX_FROM_PKGCONFIG})
string(REGEX REPLACE "/$" "" OGA_PREFIX_FROM_CMAKE ${OGA_PREFIX_FROM_CMAKE})

configure_file(${CMAKE_CURRENT_LIST_DIR}/oga.pc.in ${CMAKE_CURRENT_BINARY_DIR}/oga.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/oga-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/oga-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/oga-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS oga LIBRARY DESTINATION ${OGA_LIBRARY_DIR} COMPONENT oga)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include COMPONENT oga)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oga.pc DESTINATION ${OGA_CONFIG_DIR}/pkgconfig COMPONENT oga)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oga-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/oga-config-version.cmake
        DESTINATION ${OGA_CONFIG_DIR}/cmake/oga COMPONENT oga)
