# Target oga: liboga.so, whose dynamic symbols are the ones exports.map lets through.
add_library(oga SHARED ${OGA_CAPI_SOURCES})
target_link_libraries(oga PRIVATE oga_core oga_json)
target_include_directories(oga INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(oga PRIVATE OGA_BUILDING_LIBRARY)
set_target_properties(oga PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                                     VISIBILITY_INLINES_HIDDEN ON
                                     LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/capi/exports.map)
target_link_options(oga PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/capi/exports.map -Wl,--no-undefined)
# dlclose keeps it mapped: the ONNX Runtime, which is never unloaded, holds pointers into it (its log function, the
# operators), and what is kept for the whole process would leak at each unload.
target_link_options(oga PRIVATE -Wl,-z,nodelete)
# A host may bring another C++ library, so ours is linked in; a sanitizer needs the shared one to see exceptions.
if(NOT OGA_SANITIZE)
  target_link_options(oga PRIVATE -static-libstdc++ -static-libgcc)
else()
  target_precompile_headers(oga PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/capi/boundary.h)  # as oga_core
endif()
