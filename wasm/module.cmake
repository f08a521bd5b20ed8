# Links the core into one WebAssembly module. Emscripten's JavaScript is not used: js/src/wasm holds
# the loader, so the .js file that em++ writes beside the module stays in the build folder.
set(exports
  cresset_module_start cresset_env_new cresset_env_delete cresset_call cresset_error
  cresset_roll_hash cresset_schemas cresset_free cresset_live cresset_scope_begin cresset_scope_end
  cresset_scope_of cresset_keep cresset_scope_ids cresset_snapshot cresset_frame_capacity
  cresset_data cresset_memory_stats cresset_sweep_counter cresset_mark_sweep cresset_empty_cache
  cresset_reset_peak cresset_set_memory_limit cresset_num_threads cresset_set_num_threads
  cresset_build_info malloc free)
set(name cresset)
set(thread_options "")
if(CRESSET_WASM_THREADS)
  set(name cresset-threads)
  list(APPEND exports cresset_thread_main cresset_threads_ready _emscripten_thread_init
    emscripten_tls_init emscripten_stack_set_limits)
  set(thread_options -pthread)
endif()
list(TRANSFORM exports PREPEND _)
list(JOIN exports "," export_list)

add_executable(cresset_module wasm/host.cpp)
target_link_libraries(cresset_module PRIVATE cresset_core)
target_compile_options(cresset_module PRIVATE -mbulk-memory)
target_link_options(cresset_module PRIVATE -fwasm-exceptions -flto ${thread_options} --no-entry -O2
  -sEXPORTED_FUNCTIONS=${export_list} -sWASM_BIGINT -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=16MB
  -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=2MB -sFILESYSTEM=0
  -sERROR_ON_UNDEFINED_SYMBOLS=0 -sWARN_ON_UNDEFINED_SYMBOLS=0 -Wno-pthreads-mem-growth)
set_target_properties(cresset_module PROPERTIES OUTPUT_NAME ${name} SUFFIX ".js")

if(CRESSET_WASM_THREADS)
  # clang 14 reads a landing pad's context at one address, while Emscripten's library keeps one for
  # each thread: no catch clause would match. One for all is right here, since only the thread that
  # calls the module throws. So the library's file is compiled without thread-local variables.
  set(unwind ${EMSCRIPTEN_ROOT_PATH}/system/lib/libunwind)
  get_filename_component(compilers ${CMAKE_CXX_COMPILER} DIRECTORY)
  set(unwind_object ${CMAKE_CURRENT_BINARY_DIR}/unwind.o)
  add_custom_command(OUTPUT ${unwind_object}
    COMMAND ${compilers}/emcc -O2 -DNDEBUG ${wasm_options} -fdeclspec
      -D__USING_WASM_EXCEPTIONS__ -D_LIBUNWIND_HIDE_SYMBOLS -D_Thread_local= -include stdbool.h
      -Wno-ignored-attributes
      -I${unwind}/include -c ${unwind}/src/Unwind-wasm.c -o ${unwind_object}
    DEPENDS ${unwind}/src/Unwind-wasm.c VERBATIM)
  set_source_files_properties(${unwind_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(cresset_module PRIVATE ${unwind_object})
endif()
