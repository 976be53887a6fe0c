# Libraries that stand in for an ONNX Runtime which must be refused.
function(oga_add_fake_runtime name)
  add_library(${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/ort/fake_runtime/fake_runtime.c)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
  add_dependencies(test_ort ${name})
endfunction()

oga_add_fake_runtime(fake_runtime_old FAKE_VERSION="1.19.2")
oga_add_fake_runtime(fake_runtime_no_version FAKE_VERSION="unknown")
oga_add_fake_runtime(fake_runtime_no_api)

# Libraries that stand in for onnxruntime-extensions.
function(oga_add_fake_extensions name)
  add_library(${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/ort/fake_runtime/fake_extensions.c)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
  add_dependencies(test_ort ${name})
endfunction()

oga_add_fake_extensions(fake_extensions)
oga_add_fake_extensions(fake_extensions_new FAKE_API_VERSION=2)
oga_add_fake_extensions(fake_extensions_bare FAKE_WITHOUT_TEMPLATES)

include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_ort test_models)
