# Two commands do everything on a fresh machine: `make run` and `make test`.
# Build output is kept between runs in one cache folder outside the tree.

CACHE ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/haft
export CARGO_TARGET_DIR ?= $(CACHE)/target
HAFT := $(CARGO_TARGET_DIR)/release/haft

.PHONY: run test check docs bench audit setup setup-tests clean

run: setup ## Builds the release program and shows where you are.
	cargo build --release --locked -p haft
	@echo
	@$(HAFT)
	@echo
	@echo "The program is $(HAFT)"

test: setup-tests check ## Everything: formatting, lints, tidy, units, cases, stories, crash and race tests.
	cargo build --locked --workspace --all-targets
	cargo test --locked --workspace

check: setup ## What is quick: formatting, lints, the rules of the house.
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo xtask tidy
	cargo test --quiet --locked -p haft --lib settings::page

docs: setup ## Writes the pages that are made from the code.
	UPDATE_DOCS=1 cargo test --quiet --locked -p haft --lib settings::page

bench: setup-tests ## Measures this program beside its peers, and prints one table.
	cargo xtask bench

audit: setup ## Licences and sources of everything we depend on.
	command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check licenses bans sources

setup:
	@scripts/setup

setup-tests:
	@scripts/setup tests

clean:
	cargo clean
