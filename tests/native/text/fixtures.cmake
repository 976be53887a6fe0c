# Libraries that stand in for onnxruntime-extensions.
function(oga_add_fake_extensions name)
  add_library(${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/text/fake_extensions/fake_extensions.c)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
  add_dependencies(test_text ${name})
endfunction()

oga_add_fake_extensions(fake_extensions)
oga_add_fake_extensions(fake_extensions_new FAKE_API_VERSION=2)
oga_add_fake_extensions(fake_extensions_bare FAKE_WITHOUT_TEMPLATES)

include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_text test_texts fake_module_bound)
# Counts the allocations of the program.
target_sources(test_text PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support/allocation_hooks.cpp)
