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

include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_ort test_models)

# Every slot of the runtime is called by real use, products among them.
target_sources(test_ort PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/native/operators/cpu/product_case.cpp)
