# A small C project in a git repository, with a generator, a test in Python and two packages to install offline.
set -euo pipefail
mkdir -p src/gen tests tools packages/pad/bin
cat > .gitignore <<'END'
build/
node_modules/
vendor/
__pycache__/
END
cat > Makefile <<'END'
parts := $(wildcard src/*.c src/gen/*.c)
objects := $(parts:src/%.c=build/%.o)
build/app: $(objects)
	cc -o $@ $^
build/%.o: src/%.c
	@mkdir -p $(@D)
	cc -Isrc -c -o $@ $<
test: build/app
	./build/app > build/said && grep -q parts build/said
release: build/app
	echo $$(( $$(cat VERSION) + 1 )) > VERSION
clean:
	rm -rf build
.PHONY: test release clean
END
cat > src/main.c <<'END'
#include <stdio.h>

/* prototypes */

int main(void) {
    int parts = 0;
    /* calls */
    printf("%d parts\n", parts);
    return 0;
}
END
cat > tests/check.py <<'END'
import pathlib, subprocess, unittest

import known

class Check(unittest.TestCase):
    def test_parts(self):
        said = subprocess.check_output(["build/app"], text=True)
        self.assertIn("parts", said)
        self.assertEqual(len(list(pathlib.Path("src").glob("part*.c"))), len(known.PARTS))

unittest.main()
END
echo 'PARTS = []' > tests/known.py
cat > tools/generate.py <<'END'
import pathlib, sys

name = sys.argv[1]
folder = pathlib.Path("src/gen")
folder.mkdir(exist_ok=True)
for suffix in ("a", "b"):
    (folder / f"{name}_{suffix}.h").write_text(f"int {name}_{suffix}(void);\n")
    (folder / f"{name}_{suffix}.c").write_text(f'#include "gen/{name}_{suffix}.h"\nint {name}_{suffix}(void) {{ return 1; }}\n')
END
printf '# A project\n\n## Parts\n' > README.md
echo 1 > VERSION
cat > packages/pad/package.json <<'END'
{"name": "pad", "version": "1.0.0", "main": "index.js", "bin": {"pad": "bin/pad.js"}}
END
echo 'module.exports = (text) => text.padStart(8);' > packages/pad/index.js
printf '#!/usr/bin/env node\nconsole.log("pad");\n' > packages/pad/bin/pad.js
echo '{"name": "project", "version": "1.0.0", "private": true}' > package.json
(cd packages && npm pack --silent ./pad > /dev/null && rm -r pad)
npm install --silent --offline --no-audit --no-fund ./packages/pad-1.0.0.tgz && rm -r node_modules
python3 - <<'END'
import zipfile
with zipfile.ZipFile("packages/tally-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tally.py", "def tally(items):\n    return len(items)\n")
    wheel.writestr("tally-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n")
    wheel.writestr("tally-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("tally-1.0.dist-info/RECORD", "")
END
git init -q -b main
git config user.name Tester
git config user.email tester@example.org
git add -A
git commit -qm 'Begin'
