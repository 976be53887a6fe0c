# The golden calls of paged attention, computed by the NumPy oracle.
include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
set(golden ${OGA_TEST_DATA_DIR}/paged_attention.golden)
add_custom_command(
  OUTPUT ${golden}
  COMMAND ${model_python} -B ${CMAKE_CURRENT_SOURCE_DIR}/models/paged_attention_golden.py ${golden}
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/models/paged_attention_golden.py ${CMAKE_CURRENT_SOURCE_DIR}/models/paged_oracle.py
  COMMENT "Computing the golden calls of paged attention"
  VERBATIM)
add_custom_target(paged_attention_golden DEPENDS ${golden})
add_dependencies(test_kernels paged_attention_golden)
