# Cross-compiles with zig's clang and C libraries, by the programs that .ci/cross has written into EIGENFEAT_ZIG.
set(CMAKE_SYSTEM_NAME ${EIGENFEAT_ZIG_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR ${EIGENFEAT_ZIG_PROCESSOR})
set(CMAKE_CXX_COMPILER ${EIGENFEAT_ZIG}/c++)
set(CMAKE_AR ${EIGENFEAT_ZIG}/ar)
set(CMAKE_RANLIB ${EIGENFEAT_ZIG}/ranlib)
# What the toolchain file is given, the small programs that CMake tries are given, too.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EIGENFEAT_ZIG EIGENFEAT_ZIG_SYSTEM EIGENFEAT_ZIG_PROCESSOR)
