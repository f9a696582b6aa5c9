//! Servers that take longer to get, installed by `scripts/setup peers`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "the made-up server is not asked here")]
mod bench;
mod project;

use project::{Project, all_tools_work};

#[tokio::test(flavor = "multi_thread")]
async fn typescript() {
    all_tools_work(&Project {
        files: &[
            ("tsconfig.json", "{ \"compilerOptions\": { \"strict\": true }, \"include\": [\"*.ts\"] }"),
            ("sum.ts", "/** Adds 🦀. */\nexport function add(x: number, y: number): number {\n  return x + y;\n}\n"),
            ("main.ts", "import { add } from \"./sum\";\n\nexport const three: number = add(1, 2);\n"),
        ],
        defines: "sum.ts",
        uses: "main.ts",
        at: (3, 31),
        broken: "import { add } from \"./sum\";\n\nexport const three: string = add(1, 2);\n",
        complaint: "string",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd() {
    all_tools_work(&Project {
        files: &[
            (
                "compile_commands.json",
                "[{ \"directory\": \"WORKSPACE\", \"file\": \"main.c\", \"command\": \"cc -c main.c\" },
                  { \"directory\": \"WORKSPACE\", \"file\": \"sum.c\", \"command\": \"cc -c sum.c\" }]",
            ),
            ("sum.h", "/* Adds 🦀. */\nint add(int x, int y);\n"),
            ("sum.c", "#include \"sum.h\"\n\nint add(int x, int y) { return x + y; }\n"),
            ("main.c", "#include \"sum.h\"\n\nint three(void) { return add(1, 2); }\n"),
        ],
        defines: "sum.c",
        uses: "main.c",
        at: (3, 26),
        broken: "#include \"sum.h\"\n\nint three(void) { return add(1); }\n",
        complaint: "oo few arguments",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls() {
    all_tools_work(&Project {
        files: &[
            ("go.mod", "module sum\n\ngo 1.19\n"),
            ("sum.go", "package sum\n\n// Adds 🦀.\nfunc add(x, y int) int { return x + y }\n"),
            ("main.go", "package sum\n\nfunc three() int {\n\treturn add(1, 2)\n}\n"),
        ],
        defines: "sum.go",
        uses: "main.go",
        at: (4, 9),
        broken: "package sum\n\nfunc three() int {\n\treturn add(1)\n}\n",
        complaint: "not enough arguments",
    })
    .await;
}
