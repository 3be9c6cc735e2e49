# Thin: everything is in cmake/setup.sh and CMakeLists.txt.
.PHONY: setup quickstart test test-slow clean

setup:
	@cmake/setup.sh

quickstart: setup
	@.venv/bin/compress run configs/pipelines/quickstart.yaml

test:
	@cmake/setup.sh --tests
	@tests/run.sh fast

# Long runs: real models end to end with their figures, 10^6 random shapes a kernel row.
test-slow:
	@cmake/setup.sh --tests
	@tests/run.sh slow

clean:
	rm -rf build .venv out
