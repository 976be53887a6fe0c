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

target_compile_options(test_kernels PRIVATE -O1)  # their references loop over every shape

# What is written for AMX, over tiles in plain arithmetic.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(emulations ${CMAKE_CURRENT_SOURCE_DIR}/native/kernels/emulated_tiles_avx512bf16.cpp
                 ${CMAKE_CURRENT_SOURCE_DIR}/native/kernels/emulated_tiles_portable.cpp)
  set_source_files_properties(${emulations} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/native/kernels/emulated_tiles_avx512bf16.cpp APPEND PROPERTY
    COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512bf16;-mavx2;-mfma;-mf16c")
  if(OGA_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # As for the kernels themselves.
    set_property(SOURCE ${emulations} APPEND PROPERTY COMPILE_OPTIONS "--param=asan-use-after-return=0")
  endif()
endif()
