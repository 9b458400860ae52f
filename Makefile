# Two commands for a newcomer: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test fast check docs results bench soak matrix clean

demo: .venv/.installed
	$(BIN)/calibrant demo

# Two processes of one thread each: torch's threads spin while they wait, and would stand in each other's way.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# It forks, which a process that has run other tests with threads of its own may not live through.
ALONE := tests/training/test_several_processes.py

test: .venv/.installed .venv/.dev
	$(PYTEST) $(ALONE)
	$(PYTEST) -n 2 --dist loadfile --ignore $(ALONE)

fast: .venv/.installed .venv/.dev
	$(PYTEST) -m "not slow" $(ALONE)
	$(PYTEST) -m "not slow" -n 2 --dist loadfile --ignore $(ALONE)

check: .venv/.dev docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --doctest-modules src/calibrant -q

# A link to a page, a heading or a file that is not there ends it.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The tables of docs/results.md, from what lies in results/evidence and results/peers.
results: .venv/.installed
	$(BIN)/python docs/make_results.py

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

# The pretrained weights are fetched here, so that the tests themselves need no network.
.venv/.dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -c "from calibrant.models.pretrained import default_encoder; default_encoder()"
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info

bench: .venv/.installed
	$(BIN)/python benchmarks/run.py

# The fast tests with the oldest and the newest versions; about 40 minutes, and some 20 GB under ~/.cache/calibrant-matrix.
matrix: .venv/.installed
	$(BIN)/python benchmarks/matrix.py

# Kills, races and full disks, for less than half an hour. Disks are mounted in a name space of its own.
soak: .venv/.installed .venv/.dev
	PYTHONPATH=tests:benchmarks OMP_NUM_THREADS=1 unshare --map-root-user --mount $(BIN)/python -m soak
