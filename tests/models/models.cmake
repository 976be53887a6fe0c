# The models of the C++ tests, built into OGA_TEST_DATA_DIR/models by build_models.py.
include_guard(GLOBAL)

set(model_builders build_models.py matmul_cases.py matmul_nbits_cases.py operator_cases.py paged_decoder.py scenario.py)
set(model_python ${OGA_TEST_PYTHON})
if(NOT model_python)
  find_program(OGA_SYSTEM_PYTHON NAMES python3 REQUIRED)
  set(model_python ${OGA_SYSTEM_PYTHON})
endif()
list(TRANSFORM model_builders PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(models_stamp ${CMAKE_CURRENT_BINARY_DIR}/models.stamp)
add_custom_command(
  OUTPUT ${models_stamp}
  COMMAND ${model_python} -B ${CMAKE_CURRENT_LIST_DIR}/build_models.py ${OGA_TEST_DATA_DIR}/models
  COMMAND ${CMAKE_COMMAND} -E touch ${models_stamp}
  DEPENDS ${model_builders}
  COMMENT "Building the test models"
  VERBATIM)
add_custom_target(test_models DEPENDS ${models_stamp})

# What the `tokenizers` library makes of texts and tokens, in OGA_TEST_DATA_DIR/texts.
set(texts_stamp ${CMAKE_CURRENT_BINARY_DIR}/texts.stamp)
add_custom_command(
  OUTPUT ${texts_stamp}
  COMMAND ${model_python} -B ${CMAKE_CURRENT_LIST_DIR}/build_texts.py ${OGA_TEST_DATA_DIR}/texts
  COMMAND ${CMAKE_COMMAND} -E touch ${texts_stamp}
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/build_texts.py ${CMAKE_CURRENT_LIST_DIR}/text_kinds.py
  COMMENT "Building the test texts"
  VERBATIM)
add_custom_target(test_texts DEPENDS ${texts_stamp})
