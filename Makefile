# Thin: everything is in cmake/setup.sh and CMakeLists.txt.
.PHONY: setup trainer quickstart test test-slow test-asan clean

setup:
	@cmake/setup.sh

# LibTorch and the module that trains with it: for the stages distill, finetune, qat and prune's finetune.
trainer:
	@cmake/setup.sh --trainer

quickstart: setup
	@.venv/bin/compress run configs/pipelines/quickstart.yaml

test:
	@cmake/setup.sh --tests
	@tests/run.sh fast

# Long runs: real models end to end with their figures, 10^6 random shapes a kernel row.
test-slow:
	@cmake/setup.sh --tests
	@tests/run.sh slow

# The fast tests under AddressSanitizer and UndefinedBehaviorSanitizer: a second build, in build/asan.
test-asan:
	@cmake/setup.sh --asan
	@tests/run.sh fast asan

clean:
	rm -rf build .venv out
