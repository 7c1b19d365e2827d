# One library a folder, one test program a folder, generated registries for plug-ins.

add_library(ke_options INTERFACE)
target_include_directories(ke_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(ke_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wswitch-enum
  -Wno-missing-field-initializers)  # designated initializers with defaults are how we write options
if(KE_WERROR)
  target_compile_options(ke_options INTERFACE -Werror)
endif()
if(KE_SANITIZE)
  target_compile_options(ke_options INTERFACE -fsanitize=${KE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ke_options INTERFACE -fsanitize=${KE_SANITIZE})
endif()
if(KE_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  target_link_options(ke_options INTERFACE -static-libgcc -static-libstdc++)
endif()

# ke_library(NAME SOURCES a.cpp … DEPENDS ke_x … PRIVATE third::party …)
function(ke_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ke_options ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE})
endfunction()

# ke_test(NAME SOURCES a_test.cpp … DEPENDS ke_x … [LABEL sim|e2e|device] [TIMEOUT s])
function(ke_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ke_options ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE KE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    SKIP_RETURN_CODE 77)
endfunction()

# ke_registry(OUTPUT policies.inc MACRO KE_POLICY SYMBOLS greedy islands …)
# writes one MACRO(symbol) a line, sorted, into the current binary folder.
function(ke_registry output)
  cmake_parse_arguments(ARG "" "MACRO" "SYMBOLS" ${ARGN})
  list(SORT ARG_SYMBOLS)
  set(text "")
  foreach(symbol ${ARG_SYMBOLS})
    string(APPEND text "${ARG_MACRO}(${symbol})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output} CONTENT "${text}")
endfunction()
