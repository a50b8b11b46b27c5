/*
 * version.c - what this build is, as "key: value" lines. Everything is known when compiling except
 * the processor's instruction sets, and there are only four answers to that: four constant texts.
 */
#include "base/base.h"

#ifdef TUTTI_DEBUG
#define BUILD "debug"
#else
#define BUILD "release"
#endif
#if defined(__x86_64__)
#define MACHINE "x86-64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "other"
#endif

#ifdef TUTTI_HAVE_YAML
#define YAML "yes"
#else
#define YAML "no (job files cannot be read: install libyaml-dev and build again)"
#endif

#ifdef TUTTI_HAVE_ZMQ
#define ZMQ "yes"
#else
#define ZMQ "no (only one process per job: install libzmq3-dev and build again)"
#endif

#define STR_(x) #x
#define STR(x)  STR_(x)
#define VERSION_TEXT(sets)                                           \
    "tutti: " TT_VERSION "\n"                                        \
    "arithmetic: " STR(TT_ARITHMETIC) "\n"                           \
                                      "build: " BUILD "\n"           \
                                      "compiler: " __VERSION__ "\n"  \
                                      "machine: " MACHINE "\n"       \
                                      "instruction sets: " sets "\n" \
                                      "xxhash: yes\n"                \
                                      "jansson: yes\n"               \
                                      "zlib: yes\n"                  \
                                      "libyaml: " YAML "\n"          \
                                      "zeromq: " ZMQ "\n"

const char *tt_version_text(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("fma")) {
        if (!__builtin_cpu_supports("avx2"))
            return VERSION_TEXT("plain fma");
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            return VERSION_TEXT("plain fma avx2 avx512");
        return VERSION_TEXT("plain fma avx2");
    }
#endif
    return VERSION_TEXT("plain");
}
