# Writes a list of {"name", R"(text)"} for text files; #include lines and comments that fill a line
# are left out, except for the place of special.def, which is marked.
set(result "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(REPLACE "#include \"core/base/special.def\"\n" "CRESSET_SPECIALS\n" text "${text}")
  string(REGEX REPLACE "#include[^\n]*\n" "" text "${text}")
  string(REGEX REPLACE "#pragma once\n" "" text "${text}")
  string(REGEX REPLACE "\n *//[^\n]*" "" text "${text}")
  string(APPEND result "{\"${name}\", R\"~~(${text})~~\"},\n")
endforeach()
file(WRITE ${OUT} "${result}")
