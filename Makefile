# Makefile: the few commands people need. Everything they do is CMake underneath.
#
#   make demo    install what is missing, build, run standard and tiled attention side by side
#   make test    the same, then every test
#   make help    the rest
.DEFAULT_GOAL := build
.PHONY: help build demo images test check-structure format lint tidy asan tsan neon install clean

BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=

help:
	@sed -n 's/^#   //p' Makefile
	@echo 'make images      the pictures in docs/images, from a report of this machine'
	@echo 'make build | format | lint | tidy | asan | tsan | neon | install PREFIX=DIR | clean'

setup-build:
	@tools/setup.sh build
setup-test:
	@tools/setup.sh test
setup-check:
	@tools/setup.sh check
.PHONY: setup-build setup-test setup-check

build: setup-build
	@cmake -S . -B $(BUILD) -G Ninja -DTILEWRIGHT_BUILD_TESTS=OFF -DTILEWRIGHT_BUILD_EXAMPLES=OFF $(CMAKE_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@$(BUILD)/bin/tilewright demo

images: setup-check build
	@$(BUILD)/bin/tilewright demo --lengths 2048,4096,8192,16384 --report $(BUILD)/report.html
	@tools/report_images.py $(BUILD)/report.html docs/images

test: setup-test
	@JOBS=$(JOBS) tools/test.sh release

lint tidy asan tsan neon: setup-check
	@JOBS=$(JOBS) tools/test.sh $@

format:
	@git ls-files '*.h' '*.cpp' '*.c' '*.cu' | xargs clang-format -i

install: build
	@cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

clean:
	@rm -rf build build-* build.log

# On a machine with a Hopper GPU: build and run the GPU tests, and write tests/gpu-record.json.
gpu-test: setup-test
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)
	@python3 tools/gpu_record.py run --build $(BUILD) --sanitize

# Anywhere: whether tests/gpu-record.json is of the code that is here.
gpu-record-check:
	@python3 tools/gpu_record.py check
.PHONY: gpu-test gpu-record-check
