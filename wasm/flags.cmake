# How Emscripten compiles the core: SIMD, exceptions and, for the second module, threads.
option(CRESSET_WASM_THREADS "Build the module that needs shared memory" OFF)

# Whatever runs SIMD and exceptions converts numbers without traps as well.
set(wasm_options -msimd128 -fwasm-exceptions -mnontrapping-fptoint)
if(CRESSET_WASM_THREADS)
  list(APPEND wasm_options -pthread)
endif()

# em++ is a Python program around clang that takes a second per file to start: compile without it.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} --cflags ${wasm_options}
  OUTPUT_VARIABLE wasm_flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_program(CLANG NAMES clang++-14 clang++ REQUIRED NO_CMAKE_FIND_ROOT_PATH)
set(CMAKE_CXX_COMPILE_OBJECT
  "${CLANG} ${wasm_flags} <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")

# Highway alone: the rest of the system's headers would hide Emscripten's. wasm/include comes first
# and adds what this release of Highway lacks.
find_path(HWY_SYSTEM_INCLUDE hwy/highway.h PATHS /usr/include REQUIRED
  NO_CMAKE_FIND_ROOT_PATH)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/highway)
file(CREATE_LINK ${HWY_SYSTEM_INCLUDE}/hwy ${CMAKE_BINARY_DIR}/highway/hwy SYMBOLIC)
set(HWY_INCLUDE ${CMAKE_SOURCE_DIR}/wasm/include ${CMAKE_BINARY_DIR}/highway)
target_compile_definitions(cresset_flags INTERFACE HWY_COMPILE_ONLY_STATIC)
target_compile_options(cresset_flags INTERFACE "SHELL:-include ${CMAKE_SOURCE_DIR}/wasm/compat.h")

# The path of a small call, optimised across its files.
set(call_path base/pool base/error tensor/allocator tensor/tensor dispatch/handles dispatch/frame
  dispatch/registry ops/elementwise ops/arithmetic cpu/elementwise autograd/autograd abi)
list(TRANSFORM call_path REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/core/\\1.cpp")
set_source_files_properties(${call_path} PROPERTIES COMPILE_OPTIONS -flto)
