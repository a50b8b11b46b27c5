# Tutti's one build file. Sources are found by wildcard: a new file edits no list.
#
#   make            library and command, release        make demo     install, build, show it work
#   make test       install, build, run all tests       make check    rules a machine can check
#   make bench      tables of speed and memory          make fuzz     ten minutes of fuzzing
#   make install    under PREFIX (/usr/local)           make deps     install missing packages
#
# CONFIG=release|debug|asan|tsan picks the build, each in its own folder under build/.

CONFIG ?= release
CC     ?= cc
PREFIX ?= /usr/local
B      := build/$(CONFIG)
V      ?= 0
Q      := $(if $(filter 1,$(V)),,@)

WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
WERROR ?= -Werror
CFLAGS_release := -O2 -g1
CFLAGS_debug   := -O1 -g -DTUTTI_DEBUG
CFLAGS_asan    := -O1 -g -DTUTTI_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
# BREAK=... builds one that breaks a rule of arithmetic on purpose; the tests must notice.
BREAK ?=
BREAK_contract := -ffp-contract=fast -DTUTTI_BREAK_CONTRACT
BREAK_lanes    := -DTUTTI_BREAK_LANES
BREAK_zero     := -DTUTTI_BREAK_ZERO
BREAK_order    := -DTUTTI_BREAK_ORDER
ifneq ($(BREAK),)
B := build/break-$(BREAK)
endif

# Libraries: pkg-config name, macro. Absent ones switch a feature off.
PKG      := $(shell command -v pkg-config)
have      = $(if $(PKG),$(shell pkg-config --exists $(1) && echo 1))
HAVE_XXHASH := $(call have,libxxhash)
HAVE_HWLOC  := $(call have,hwloc)
LIBS   := -lpthread $(if $(HAVE_XXHASH),-lxxhash) $(if $(HAVE_HWLOC),-lhwloc) -lm
DEFS   := -D_GNU_SOURCE $(if $(HAVE_XXHASH),-DTUTTI_HAVE_XXHASH) $(if $(HAVE_HWLOC),-DTUTTI_HAVE_HWLOC)

CFLAGS_ALL = -std=c11 $(DEFS) -Iinclude -Isrc -ffp-contract=off -fPIC -fvisibility=hidden -MMD -MP \
             $(WARN) $(WERROR) $(CFLAGS_$(CONFIG)) $(BREAK_$(BREAK)) $(CFLAGS)
LDFLAGS_ALL = $(LDFLAGS_$(CONFIG)) $(LDFLAGS)

# Kernel sources (NAME_cpu.c) are compiled once per instruction set.
ARCH := $(shell uname -m)
ifeq ($(ARCH),x86_64)
SETS := plain fma avx2 avx512 f64
else
SETS := plain f64
endif
SET_plain  := -DTTI_SET_PLAIN
SET_fma    := -DTTI_SET_FMA -mfma
SET_avx2   := -DTTI_SET_AVX2 -mavx2 -mfma -mf16c
SET_avx512 := -DTTI_SET_AVX512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512
SET_f64    := -DTTI_SET_F64
KFLAGS     := -O3 -Wno-unused-function

KERNELS := $(wildcard src/*/*_cpu.c)
SOURCES := $(filter-out $(KERNELS) $(wildcard src/cli/*.c),$(wildcard src/*/*.c))
LIB_OBJ := $(SOURCES:%.c=$(B)/%.o) $(foreach s,$(SETS),$(KERNELS:%.c=$(B)/%.$(s).o))
CLI_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard src/cli/*.c))
TEST_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/*.c tests/*/*.c))
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/*.c))
BENCHES  := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))

.PHONY: all demo test test-run check bench deps install clean fuzz examples test-break
all: $(B)/libtutti.a $(B)/libtutti.so $(B)/tutti

$(B)/libtutti.a: $(LIB_OBJ)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/libtutti.so: $(LIB_OBJ)
	@echo "  LD    $@"
	$(Q)$(CC) -shared -Wl,-soname,libtutti.so.0 -o $@ $^ $(LDFLAGS_ALL) $(LIBS)
$(B)/tutti: $(CLI_OBJ) $(B)/libtutti.a
	@echo "  LD    $@"
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(LIBS)

define kernel_rule
$(B)/%_cpu.$(1).o: %_cpu.c
	@echo "  CC    $$< ($(1))"
	@mkdir -p $$(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(KFLAGS) $(SET_$(1)) -c -o $$@ $$<
endef
$(foreach s,$(SETS),$(eval $(call kernel_rule,$(s))))

$(B)/tests/%.o: tests/%.c
	@echo "  CC    $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Itests $(TEST_DEFS) -c -o $@ $<
$(B)/%.o: %.c
	@echo "  CC    $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(B)/tests/run: $(TEST_OBJ) $(B)/libtutti.a
	@echo "  LD    $@"
	$(Q)$(CC) -o $@ $(TEST_OBJ) $(B)/libtutti.a $(LDFLAGS_ALL) $(shell pkg-config --libs check 2>/dev/null || echo -lcheck) $(LIBS)
$(B)/examples/%: examples/%.c $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< $(B)/libtutti.a $(LDFLAGS_ALL) $(LIBS)
$(B)/bench/%: bench/%.c $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< $(B)/libtutti.a $(LDFLAGS_ALL) $(BENCH_LIBS) $(LIBS)

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d)
