# Tutti's one build file. Sources are found by wildcard: a new file edits no list.
#
#   make            library and command, release        make demo     install, build, show it work
#   make test       install, build, run all tests       make check    rules a machine can check
#   make bench      tables of speed and memory          make fuzz     ten minutes of fuzzing
#   make install    under PREFIX (/usr/local)           make deps     install missing packages
#   make docs       the documentation as a site in build/docs
#   make cuda       the module for NVIDIA GPUs          make emu      the same, emulated on the CPU
#   make python     the generated files of python/      make test-python    its tests
#
#   make test-gpu sanitize-gpu bench-gpu    on a machine with an NVIDIA GPU (docs/gpu.md)
#   make test-launchers    real mpirun and torchrun (TORCH_PYTHON=...)    make test-slurm    real Slurm
#   make test-asan test-tsan    the suite with sanitizers    make test-break    rule-breaking builds fail
#   make test-docs    every block of the documentation; CLEAN=1: in a fresh clone, CLEAN=chroot: and Debian
#
# CONFIG=release|debug|asan|tsan|fuzz picks the build, each in its own folder under build/. CUDA=0
# leaves the module for GPUs out, CUDA=1 demands it; without either it is built where nvcc is found,
# for the GPUs of this machine, or for one architecture where there are none. CUDA_ARCHS="80 90" asks
# for others.

CONFIG ?= release
CC     ?= cc
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 1)
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
B      := build/$(CONFIG)
V      ?= 0
Q      := $(if $(filter 1,$(V)),,@)

WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
WERROR ?= # -Werror in make check and .ci/run: a newer compiler must still build a release
CFLAGS_release := -O2 -g1
CFLAGS_debug   := -O1 -g -DTUTTI_DEBUG
# Sanitizers hide from the compiler what bounds a value, so it warns of what cannot happen.
NO_FALSE       := -Wno-format-truncation -Wno-stringop-truncation -Wno-maybe-uninitialized
CFLAGS_asan    := -O1 -g -DTUTTI_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer $(NO_FALSE)
CFLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan $(NO_FALSE)
CFLAGS_fuzz    := -O1 -g -DTUTTI_DEBUG -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
LDFLAGS_fuzz   := -fsanitize=fuzzer,address,undefined
ifeq ($(CONFIG),fuzz)
CC := clang
endif
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
HAVE_YAML   := $(call have,yaml-0.1)
HAVE_ZMQ    := $(call have,libzmq)
HAVE_SQLITE := $(call have,sqlite3)
HAVE_HTTP   := $(call have,libmicrohttpd)
HAVE_JPEG   := $(call have,libjpeg)
HAVE_PNG    := $(call have,libpng)
HAVE_WEBP   := $(call have,libwebp)
HAVE_DNNL   := $(if $(wildcard /usr/include/dnnl.h),1)
CHECK_LIBS  := $(if $(PKG),$(shell pkg-config --libs check 2>/dev/null),-lcheck)
# DEPS=folder: libraries gathered by tools/gpu-pack, for machines that cannot install any.
DEPS ?= $(if $(PKG),,$(wildcard build/gpu-deps))
ifneq ($(DEPS),)
HAVE_XXHASH := 1
HAVE_YAML   := 1
HAVE_ZMQ    :=
HAVE_SQLITE :=
HAVE_HTTP   :=
HAVE_JPEG   :=
HAVE_PNG    :=
HAVE_WEBP   :=
CHECK_LIBS  := -lcheck -lsubunit -lrt
DEPS_CFLAGS := -isystem $(DEPS)/include
DEPS_LDFLAGS := -L$(DEPS)/lib
# Static libraries need not be position-independent, so the shared library takes shared ones.
DEPS_SHARED := -L$(DEPS)/lib/shared -Wl,-rpath,$(abspath $(DEPS))/lib/shared
endif
BENCH_DEFS  := $(if $(HAVE_DNNL),-DTUTTI_HAVE_DNNL)
BENCH_LIBS  := $(if $(HAVE_DNNL),-ldnnl)
# ZeroMQ is referred to weakly (net/zmq_weak.h), so the linker is told to keep it.
LIB_ZMQ := -Wl,--push-state,--no-as-needed,-lzmq,--pop-state
LIB_IMAGES := $(if $(HAVE_JPEG),-ljpeg) $(if $(HAVE_PNG),-lpng) $(if $(HAVE_WEBP),-lwebp)
LIBS   := $(LIB_IMAGES) $(if $(HAVE_YAML),-lyaml) $(if $(HAVE_ZMQ),$(LIB_ZMQ)) -ljansson -lz -lpthread -ldl -lm
DEFS   := -D_GNU_SOURCE $(if $(HAVE_XXHASH),-DTUTTI_HAVE_XXHASH) $(if $(HAVE_YAML),-DTUTTI_HAVE_YAML) \
          $(if $(HAVE_ZMQ),-DTUTTI_HAVE_ZMQ)

CFLAGS_ALL = -std=c11 $(DEFS) $(DEPS_CFLAGS) -Iinclude -Isrc -ffp-contract=off -fPIC -fvisibility=hidden -MMD -MP \
             $(WARN) $(WERROR) $(CFLAGS_$(CONFIG)) $(BREAK_$(BREAK)) $(CFLAGS)
LDFLAGS_ALL = $(LDFLAGS_$(CONFIG)) $(DEPS_LDFLAGS) $(LDFLAGS)

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
# A sanitizer that looks at every access of sixteen-element structs takes minutes a file when the
# functions on them are inlined, seconds when not.
ifneq ($(filter asan tsan,$(CONFIG)),)
SET_plain += -fno-inline
SET_fma   += -fno-inline
SET_f64   += -fno-inline
endif
# Kernels are optimised more, but not where a sanitizer looks at every access.
KFLAGS_release := -O3
ifeq ($(ARCH),x86_64) # there these are for old processors and for f64: not worth a minute of a build
KFLAGS_release_plain := -O2
KFLAGS_release_fma   := -O2
KFLAGS_release_f64   := -O2
endif
KFLAGS_debug   := -O2
KFLAGS_fuzz    := -O0 -fno-sanitize=all
# Sixteen numbers one by one, each checked, take the compiler minutes if it is to optimise them.
KFLAGS_asan_plain := -O0
KFLAGS_asan_fma   := -O0
KFLAGS_asan_f64   := -O0
TFLAGS_asan       := -O0
TFLAGS_release    := -O1
# No errno: a square root is the instruction, not a call. It changes no value.
KFLAGS     = $(KFLAGS_$(CONFIG)) -fno-math-errno -Wno-unused-function -Wno-unknown-pragmas

KERNELS := $(wildcard src/*/*_cpu.c src/*/*/*_cpu.c)
SOURCES := $(filter-out $(KERNELS) $(wildcard src/cli/*.c),$(wildcard src/*/*.c src/*/*/*.c))
LIB_OBJ := $(SOURCES:%.c=$(B)/%.o) $(foreach s,$(SETS),$(KERNELS:%.c=$(B)/%.$(s).o))
CLI_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard src/cli/*.c))
TEST_SRC := $(filter-out tests/install/% tests/fuzz/% tests/examples/%,$(wildcard tests/*.c tests/*/*.c)) \
            $(wildcard src/cli/matrix*.c) # the matrix of same bits, which the command prints
TEST_OBJ := $(TEST_SRC:%.c=$(B)/%.o)
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/*.c))
BENCHES  := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))
FUZZERS  := $(patsubst tests/fuzz/%.c,%,$(filter-out tests/fuzz/driver.c,$(wildcard tests/fuzz/*.c)))
VERSION  := $(shell sed -n 's/^.define TT_VERSION *"\(.*\)"/\1/p' include/tutti/base.h)
SONAME   := libtutti.so.$(firstword $(subst ., ,$(VERSION)))

# The module for NVIDIA GPUs: its files and the kernels beside the ops. CUDA_ARCHS lists what is
# compiled to machine code; the newest of them is added as PTX, for cards newer than this build.
NVCC       ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc) nvcc)
CUDA_ASKED := $(CUDA)
CUDA       ?= $(if $(shell command -v $(NVCC)),1,0)
ifeq ($(origin CUDA_ARCHS),undefined)
CUDA_HERE  := $(if $(filter 1,$(CUDA)),$(shell tools/gpu-archs))
CUDA_ARCHS := $(or $(CUDA_HERE),90)
CUDA_WHY   := $(if $(CUDA_HERE),the GPUs of this machine,no GPU here; CUDA_ARCHS="80 90" builds for others)
else
CUDA_WHY   := as CUDA_ARCHS asks
endif
CUDA_SRC   := $(wildcard src/*/*.cu src/*/*/*.cu)
CUDA_OBJ   := $(CUDA_SRC:%.cu=$(B)/%.cu.o)
CUDA_SO    := $(B)/libtutti-cuda.so
CUDA_CODES  = $(CUDA_ARCHS)
CUDA_CODE   = $(foreach a,$(CUDA_CODES),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
# Where no GPU is to run it, make test only sees that it compiles and links, in half the time.
CUDA_OPT_unoptimised := -O0 -Xcicc -O0 -Xptxas -O0
CUDA_OPT    = $(or $(CUDA_OPT_$(CONFIG)),-O3)
CUDA_FLAGS  = -std=c++17 $(CUDA_OPT) -fmad=false -ftz=true $(CUDA_CODE) -Iinclude -Isrc \
              --compiler-options -fPIC,-fvisibility=hidden,-Wall,-Wextra \
              $(if $(filter -Werror,$(WERROR)),-Werror all-warnings --compiler-options -Werror)

# The same sources for a CPU: the emulation's headers come before those of CUDA. Their warnings are
# nvcc's business.
EMU_SRC   := $(wildcard tests/emu/*.cpp)
EMU_OBJ   := $(CUDA_SRC:%.cu=$(B)/emu/%.o) $(EMU_SRC:%.cpp=$(B)/emu/%.o)
EMU_SO    := $(B)/libtutti-cuda-emu.so
EMU_OPT_release := -O1 -g1 # -O2 compiles 25 s longer and runs 3 % faster
# A fused multiply-add as one instruction where this processor has it: the same bits as libm's call.
EMU_FMA   := $(if $(shell grep -m 1 -ow fma /proc/cpuinfo 2>/dev/null),-mfma)
EMU_FLAGS  = -std=c++17 -DTTI_EMU -D_GNU_SOURCE -Itests/emu -Iinclude -Isrc -ffp-contract=off -fPIC \
             -fvisibility=hidden -fpermissive -w $(EMU_FMA) $(or $(EMU_OPT_$(CONFIG)),$(CFLAGS_$(CONFIG)))

# A rule-breaking build compiles some of the sources its rule is in and takes the rest from release.
ifneq ($(BREAK),)
BROKEN_contract := src/op/cpu/norm_cpu.c src/op/cpu/unary_cpu.c src/op/cpu/binary_cpu.c
BROKEN_zero     := src/op/cpu/matmul_cpu.c src/op/cpu/reduce_cpu.c
BROKEN_order    := src/op/cpu/reduce_cpu.c
BROKEN := $(BROKEN_$(BREAK)) $(shell grep -l TUTTI_BREAK_$(shell echo $(BREAK) | tr a-z A-Z) $(SOURCES))
# Of the instruction sets those are broken that processors of today use: the tests compare them with
# the others and with the rule, and the matrix takes the best.
BROKEN_SETS := $(or $(filter avx2 avx512,$(SETS)),$(SETS))
BROKEN_OBJ := $(filter-out $(foreach s,$(filter-out $(BROKEN_SETS),$(SETS)),%_cpu.$(s).o), \
                $(foreach f,$(BROKEN),$(filter $(B)/$(f:%.c=%).%,$(LIB_OBJ))))
LIB_OBJ := $(BROKEN_OBJ) $(patsubst $(B)/%,build/release/%,$(filter-out $(BROKEN_OBJ),$(LIB_OBJ)))
TEST_OBJ := $(TEST_SRC:%.c=build/release/%.o)
CLI_OBJ := $(CLI_OBJ:$(B)/%=build/release/%)
KFLAGS_release := -O2
endif

.PHONY: all demo demo-run test test-run test-asan test-tsan test-break test-docs docs test-all check \
        warnings bench bench-run deps install clean fuzz fuzz-run examples cuda emu \
        test-gpu sanitize-gpu bench-gpu python test-python test-launchers test-slurm
all: $(B)/libtutti.a $(B)/$(SONAME) $(B)/tutti $(if $(filter 1,$(CUDA)),$(if $(BREAK),,$(CUDA_SO)))
	@tools/built-from $(B) note $(if $(filter 1,$(CUDA)),$(if $(BREAK),,cuda))
cuda: $(CUDA_SO)
emu: $(EMU_SO)

$(B)/libtutti.a: $(LIB_OBJ)
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/libtutti.so: $(LIB_OBJ)
	@echo "  LD    $@"
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -o $@ $^ $(DEPS_SHARED) $(LDFLAGS_ALL) $(LIBS)
$(B)/$(SONAME): $(B)/libtutti.so # what programs that are linked with it look for
	$(Q)ln -sf libtutti.so $@
# The index of runs is the command's alone, and so is SQLite.
$(B)/src/cli/run_index.o $(B)/src/cli/run_query.o: private CFLAGS += $(if $(HAVE_SQLITE),-DTUTTI_HAVE_SQLITE)
$(B)/src/cli/serve_http.o $(B)/src/cli/version.o: private CFLAGS += $(if $(HAVE_HTTP),-DTUTTI_HAVE_MICROHTTPD)
$(B)/tutti: $(CLI_OBJ) $(B)/libtutti.a
	@echo "  LD    $@"
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(if $(HAVE_SQLITE),-lsqlite3) $(if $(HAVE_HTTP),-lmicrohttpd) $(LIBS)

# Everything is compiled anew when flags change, for example when deps installed a library.
FLAGS_NOW = $(filter-out -Werror,$(CC) $(CFLAGS_ALL) $(KFLAGS)) \
            $(foreach s,$(SETS),$(KFLAGS_$(CONFIG)_$(s))) $(TFLAGS_$(CONFIG))
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' > $@
FORCE:

# Of libraries that decode images only their own file knows, so only that is compiled anew.
$(B)/images.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(LIB_IMAGES)' | cmp -s - $@ || echo '$(LIB_IMAGES)' > $@
$(B)/src/data/decode_jpeg.o $(B)/src/data/decode_png.o $(B)/src/data/decode_webp.o: $(B)/images.flags
$(B)/src/data/decode_jpeg.o: private CFLAGS += $(if $(HAVE_JPEG),-DTUTTI_HAVE_JPEG)
$(B)/src/data/decode_png.o: private CFLAGS += $(if $(HAVE_PNG),-DTUTTI_HAVE_PNG)
$(B)/src/data/decode_webp.o: private CFLAGS += $(if $(HAVE_WEBP),-DTUTTI_HAVE_WEBP)
# Resizing is integers: more optimisation changes no value.
$(B)/src/data/resample.o: private CFLAGS += $(KFLAGS_$(CONFIG))

# nvcc takes its flags from elsewhere, so it has a file of its own.
$(B)/cuda.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(NVCC) $(filter-out -Werror all-warnings,$(CUDA_FLAGS))' | cmp -s - $@ || { \
	    echo '  CUDA  compute capability $(CUDA_ARCHS) ($(CUDA_WHY))'; \
	    echo '$(NVCC) $(filter-out -Werror all-warnings,$(CUDA_FLAGS))' > $@; }
$(B)/%.cu.o: %.cu $(B)/cuda.flags
	@echo "  NVCC  $<"
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(CUDA_FLAGS) -MD -MP -MF $(@:.o=.d) -c -o $@ $<
# The library and the module compare a hash of the headers that both may know.
MODULE_HASH := $(shell cat $(sort $(wildcard include/tutti/*.h src/base/*.h src/device/*.h src/op/*.h \
                 src/plan/*.h src/cuda/module.h)) | sha256sum | cut -c1-16)
MODULE_DEF  := -DTTI_CUDA_HEADERS='"$(MODULE_HASH)"'
$(B)/module_hash: FORCE
	@mkdir -p $(@D)
	@echo '$(MODULE_HASH)' | cmp -s - $@ || echo '$(MODULE_HASH)' > $@
$(B)/src/cuda/load.o $(B)/src/cuda/module.cu.o $(B)/emu/src/cuda/module.o: $(B)/module_hash
$(B)/src/cuda/load.o: private CFLAGS_ALL += $(MODULE_DEF)
$(B)/src/cuda/module.cu.o: private CUDA_FLAGS += $(MODULE_DEF)
$(B)/emu/src/cuda/module.o: private EMU_FLAGS += $(MODULE_DEF)
# Instructions of 9.0 that no later card has are 90a's. Both in one file could be mistaken at run time.
$(B)/src/op/gpu/conv_wgmma.cu.o: private CUDA_CODES = $(patsubst 90,90a,$(CUDA_ARCHS))
$(CUDA_SO): $(CUDA_OBJ) src/cuda/module.map
	@echo "  LD    $@"
	$(Q)$(NVCC) -shared -cudart static -Xlinker --version-script=src/cuda/module.map \
	    -Xlinker -soname=libtutti-cuda.so -o $@ $(CUDA_OBJ) -ldl -lpthread

$(B)/emu/%.o: %.cu $(B)/flags
	@echo "  CXX   $<"
	@mkdir -p $(@D)
	$(Q)$(CXX) $(EMU_FLAGS) -MMD -MP -x c++ -c -o $@ $<
$(B)/emu/%.o: %.cpp $(B)/flags
	@echo "  CXX   $<"
	@mkdir -p $(@D)
	$(Q)$(CXX) $(EMU_FLAGS) -MMD -MP -c -o $@ $<
$(EMU_SO): $(EMU_OBJ) src/cuda/module.map
	@echo "  LD    $@"
	$(Q)$(CXX) -shared -Wl,--version-script=src/cuda/module.map -o $@ $(EMU_OBJ) $(LDFLAGS_ALL) \
	    -ldl -lpthread

define kernel_rule
$(B)/%_cpu.$(1).o: %_cpu.c $(B)/flags
	@echo "  CC    $$< ($(1))"
	@mkdir -p $$(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(KFLAGS) $(KFLAGS_$(CONFIG)_$(1)) $(SET_$(1)) -c -o $$@ $$<
endef
$(foreach s,$(SETS),$(eval $(call kernel_rule,$(s))))

$(B)/tests/%.o: tests/%.c $(B)/flags
	@echo "  CC    $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Itests $(TFLAGS_$(CONFIG)) -c -o $@ $<
$(B)/%.o: %.c $(B)/flags
	@echo "  CC    $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(B)/tests/run: $(TEST_OBJ) $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $(TEST_OBJ) $(B)/libtutti.a $(LDFLAGS_ALL) $(CHECK_LIBS) $(LIBS)
$(B)/examples/%: examples/%.c $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -o $@ $< $(B)/libtutti.a $(LDFLAGS_ALL) $(LIBS)
$(B)/bench/%: bench/%.c $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(BENCH_DEFS) -MF $@.d -MT $@ -o $@ $< $(B)/libtutti.a $(LDFLAGS_ALL) $(BENCH_LIBS) $(LIBS)
# With clang's libFuzzer (CONFIG=fuzz), or with a small driver of our own in any other build.
$(B)/fuzz/%: tests/fuzz/%.c $(if $(filter fuzz,$(CONFIG)),,tests/fuzz/driver.c) $(B)/libtutti.a
	@echo "  LD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -o $@ $^ $(LDFLAGS_ALL) $(LIBS)

# ---- what people type ------------------------------------------------------------------------
# demo, test and bench install first and then call make again, so that it finds what is new.

deps:
	@tools/deps

demo: deps
	@$(MAKE) demo-run $(if $(wildcard /dev/nvidiactl),,CUDA=0)
demo-run: all examples
	@tools/demo $(B)

NVCC_ONLY := $(if $(wildcard /dev/nvidiactl),,$(filter 1,$(CUDA)))
test: deps
	@$(if $(NVCC_ONLY),$(MAKE) CONFIG=unoptimised cuda)
	@$(MAKE) test-run $(if $(NVCC_ONLY),CUDA=0)
test-run: all examples $(B)/tests/run $(EMU_SO) $(FUZZERS:%=$(B)/fuzz/%)
	@BESIDE="$(MAKE) test-break" tools/test $(B)

ASAN_EMU ?= build/asan/libtutti-cuda-emu.so # empty: tests on the emulated GPU are skipped
test-asan:
	@$(MAKE) CONFIG=asan CUDA=0 all examples build/asan/tests/run $(ASAN_EMU) $(FUZZERS:%=build/asan/fuzz/%)
	@SKIP_INSTALL=1 SKIP_DOCS=1 tools/test build/asan
test-tsan:
	@$(MAKE) CONFIG=tsan CUDA=0 all examples build/tsan/tests/run
	@SKIP_INSTALL=1 SKIP_FUZZ=1 SKIP_DOCS=1 tools/test build/tsan
docs: deps
	@tools/docs build/docs
# The Python package: its generated files, from the headers and the library's catalogue; its tests.
python: all
	@python3 python/generate.py $(B)/libtutti.so
test-python: all
	@tools/python-deps || true
	@tools/test-python $(B) $(PYTEST)
# Launchers of others, installed where that is possible; what is not there is named as skipped.
TORCH_PYTHON ?= python3
test-launchers: all
	@tools/launcher-deps openmpi-bin mpich
	@TORCH_PYTHON="$(TORCH_PYTHON)" tests/dist/launchers $(B) all
test-slurm: all
	@tools/launcher-deps slurm-wlm munge
	@tests/dist/slurm $(B)
CLEAN ?=
ifeq ($(CLEAN),)
test-docs: all examples $(EMU_SO)
	@tests/docs/faults $(B)
	@tests/docs/run $(B)
	@tests/docs/site $(B)
else
test-docs:
	@tests/docs/clean $(CLEAN)
endif
test-break: all $(B)/tests/run
	@for b in contract lanes zero order; do \
	    $(MAKE) CONFIG=release BREAK=$$b build/break-$$b/tests/run build/break-$$b/tutti || exit 1; \
	    tools/must-fail $$b || exit 1; \
	done
test-all: test check test-asan test-tsan
	@$(MAKE) fuzz

check: $(B)/libtutti.a $(B)/$(SONAME) $(B)/tutti # nothing in it looks at the GPU module
	@tools/check $(B)

# Compiles nothing, only asks for warnings (tools/check).
WARN_RUN = $(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Werror -Itests -fsyntax-only
warnings:
	@printf '%s\n' $(SOURCES) $(wildcard src/cli/*.c examples/*.c) $(TEST_SRC) | \
	    xargs -P $(JOBS) -n 4 $(WARN_RUN)
	@printf '%s\n' $(wildcard bench/*.c) | xargs -P $(JOBS) -n 4 $(WARN_RUN) $(BENCH_DEFS)
	@$(foreach s,$(SETS),printf '%s\n' $(KERNELS) | \
	    xargs -P $(JOBS) -n 4 $(WARN_RUN) $(KFLAGS) $(SET_$(s)) &&) true

bench: deps
	@$(MAKE) bench-run
bench-run: $(BENCHES)
	@for b in $(filter-out %/gpu,$(BENCHES)); do echo; $$b || exit 1; done

# For a machine with a GPU and nvcc that may have no packages to install: see docs/gpu.md.
GPU_ARCH = $(or $(firstword $(shell tools/gpu-archs)),90)
test-gpu sanitize-gpu:
	@$(MAKE) CUDA=1 CUDA_ARCHS="$(GPU_ARCH)" $(B)/tutti $(CUDA_SO) $(B)/tests/run
	@tools/$@ $(B)
bench-gpu:
	@$(MAKE) CUDA=1 CUDA_ARCHS="$(GPU_ARCH)" $(B)/tutti $(CUDA_SO) $(B)/bench/gpu
	@tools/$@ $(B) $(BENCH_FLAGS)

examples: $(EXAMPLES)

FUZZ_SECONDS ?= 600
fuzz: deps
	@$(MAKE) CONFIG=fuzz fuzz-run
fuzz-run: $(FUZZERS:%=$(B)/fuzz/%)
	@for f in $(FUZZERS); do \
	    mkdir -p build/corpus/$$f && echo "$$f for $(FUZZ_SECONDS) s" && \
	    $(B)/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
	        -print_final_stats=1 build/corpus/$$f tests/fuzz/corpus/$$f || exit 1; \
	done

# What was built of these very sources is installed as it is, whatever the times of the files (a
# copied tree) and the environment (another user, sudo) are.
install:
	@tools/built-from $(B) check $(if $(filter 1,$(CUDA_ASKED)),cuda) || $(MAKE) all
	@echo "  INST  $(DESTDIR)$(PREFIX)"
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	    $(DESTDIR)$(PREFIX)/include/tutti
	$(Q)install -m 755 $(B)/tutti $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 include/tutti/*.h $(DESTDIR)$(PREFIX)/include/tutti/
	$(Q)install -m 644 $(B)/libtutti.a $(DESTDIR)$(PREFIX)/lib/
	$(Q)install -m 755 $(B)/libtutti.so $(DESTDIR)$(PREFIX)/lib/libtutti.so.$(VERSION)
	$(Q)ln -sf libtutti.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtutti.so
	$(Q)$(if $(filter 0,$(CUDA_ASKED)),,if tools/built-from $(B) check cuda; then \
	    install -m 755 $(CUDA_SO) $(DESTDIR)$(PREFIX)/lib/; fi)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@LIBS@|$(if $(DEPS),-L$(abspath $(DEPS))/lib )$(LIBS)|' \
	    tools/tutti.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tutti.pc
	$(Q)$(if $(DESTDIR),true,tools/install-note $(PREFIX))

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d) $(EXAMPLES:%=%.d) $(BENCHES:%=%.d) \
         $(CUDA_OBJ:.o=.d) $(EMU_OBJ:.o=.d)
