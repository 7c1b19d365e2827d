# One library a folder, one test program a folder, generated registries for plug-ins.
include(${CMAKE_CURRENT_LIST_DIR}/Embed.cmake)

add_library(ke_options INTERFACE)
target_include_directories(ke_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(ke_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wswitch-enum
  -Wno-missing-field-initializers  # designated initializers with defaults are how we write options
  -Wno-restrict)                   # false alarms of g++ 12 on std::string (GCC bug 105651)
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

# With CMAKE_UNITY_BUILD, which scripts/setup.sh sets, CMake compiles the files of a library or test in
# batches: what their headers cost is paid once a batch. So a name in an anonymous namespace is used
# by one file of a library only. Plug-ins, which do not know of each other, are compiled alone:
# ke_compile_alone(a.cpp …)
function(ke_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

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
  # No test times its own code; what it tests is optimised in the libraries. (At -O1 g++ takes
  # optional and variant for uninitialised.)
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-O1;-Wno-maybe-uninitialized>")
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
