# On a fresh machine: `make install` for the program, `make run` to try it where it was built, `make test` for everything.
# Build output is kept between runs in one cache folder outside the tree.

CACHE ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/haft
export CARGO_TARGET_DIR ?= $(CACHE)/target
HAFT := $(CARGO_TARGET_DIR)/release/haft
PREFIX ?= $(HOME)/.local

.PHONY: install run test test-peers check docs release bench audit setup setup-check setup-tests setup-peers clean

install: setup ## Builds the release program and installs it into PREFIX (~/.local), with completions and man pages.
	cargo build --release --locked -p haft
	@scripts/install $(HAFT) $(PREFIX)

run: setup ## Builds the release program and serves its page, REST and MCP on this machine, with a demo tenant.
	cargo build --release --locked -p haft
	@echo
	@echo "The program is $(HAFT); \`make install\` puts it on your PATH"
	@$(HAFT) serve --demo

test: setup-tests check ## Everything: formatting, lints, tidy, units, cases, stories, crash and race tests, MCP conformance.
	cargo build --locked --workspace --all-targets
	scripts/run-tests

# Beside programs that take long to install, or are not everywhere; one line each.
test-peers: setup-peers ## What `make test` leaves out: peers that are slower to get.
	cargo test --locked -p haft --features peers --test agent_peers --test lsp_peers --test mcp_peers --test upstream_peers
	cargo build --locked -p haft
	scripts/peers/search $(CARGO_TARGET_DIR)/debug/haft

check: setup-check ## What is quick: formatting, lints, the rules of the house.
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo xtask tidy
	cargo test --quiet --locked -p haft --lib settings::page
	cargo test --quiet --locked -p haft --test man
	cargo test --quiet --locked -p haft-server --lib typescript

docs: setup ## Writes the pages that are made from the code, and the list of changes.
	UPDATE_DOCS=1 cargo test --quiet --locked -p haft --lib settings::page
	UPDATE_DOCS=1 cargo test --quiet --locked -p haft --test man
	UPDATE_DOCS=1 cargo test --quiet --locked -p haft-server --lib typescript
	cargo xtask changelog

release: setup ## Puts a tar.gz together: the program, licences, man pages, completions.
	cargo xtask release

# `make bench gateway` measures that part alone: what is named behind `bench` is no goal of its own.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
PARTS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
endif
ifneq (,$(PARTS))
.PHONY: $(PARTS)
$(PARTS):
	@:
endif

bench: setup-peers ## Measures this program beside its peers, and prints one table.
	TEST_POSTGRES_FSYNC=on scripts/with-postgres cargo xtask bench $(PARTS)

audit: setup ## Licences and sources of everything we depend on.
	command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check licenses bans sources

setup:
	@scripts/setup

setup-check:
	@scripts/setup check

setup-tests:
	@scripts/setup tests

setup-peers:
	@scripts/setup peers

clean:
	cargo clean
