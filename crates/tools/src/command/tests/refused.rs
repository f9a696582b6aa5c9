//! What is refused in every mode, and what looks like it and is not.

use std::path::Path;

use crate::command::{CommandLine, Places};

const REFUSED: &[&str] = &[
    // The samples of the specification.
    "rm -rf /",
    "dd if=/dev/zero of=/dev/sda",
    ":(){ :|:& };:",
    // The root in other spellings.
    "rm -fr /",
    "rm -fr -- /",
    "rm -r -f //",
    "rm -r /",
    "rm -R /",
    "rm --recursive --force /.",
    "rm --rec --fo /",
    "rm -rf /../",
    "rm -rf /home/../",
    "rm -rf /usr/./../..",
    "rm -rf /*",
    "rm -rf /.*",
    "rm -rf //*",
    "rm -rf / --no-preserve-root",
    "rm -rf --no-preserve-root /",
    "rm -rf --no-preserve-root \"$X\"",
    "rm / -rf",
    "rm -rf build / tmp",
    "rm -rf -v /",
    "rm -rf '/'",
    "rm -rf \"/\"",
    "rm -rf \\/",
    "rm -rf ${PWD}/../../../../",
    "rm -rf ../../../..",
    "rm -rf > log /",
    "rm -rf 2>/dev/null /",
    "> log rm -rf /",
    "2>/dev/null rm -rf /",
    "<<< x rm -rf /",
    "cd / > log && rm -rf *",
    // The program in other spellings.
    "\\rm -rf /",
    "r''m -rf /",
    "'rm' -rf /",
    "\"rm\" -rf /",
    "r\"m\" -r''f /",
    "$'rm' -rf /",
    "/bin/rm -rf /",
    "/usr/bin/rm -rf /",
    "../../../../../bin/rm -rf /",
    "r=rm; $r -rf /",
    "d=/; rm -rf \"$d\"",
    "d=/ ; rm -rf $d*",
    "export D=/; rm -rf $D",
    // Home.
    "rm -rf ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    "rm -rf ~/.*",
    "rm -rf ~/.[!.]*",
    "rm -rf $HOME",
    "rm -rf \"$HOME\"",
    "rm -rf ${HOME}/",
    "rm -rf \"${HOME:?}\"",
    "rm -rf ${HOME:-/tmp}",
    "rm -rf $HOME/*",
    "rm -rf /home/anna",
    "rm -rf /home/anna/",
    "rm -rf /home/ann?",
    "rm -rf /home/*",
    "rm -rf /home",
    "rm -rf /ho*",
    "rm -rf /{tmp,home}/anna",
    "HOME=/tmp/x rm -rf $HOME",
    // Around the workspace.
    "rm -rf ..",
    "rm -rf ../",
    "rm -rf ../*",
    "rm -rf ../../work",
    "rm -rf /home/anna/work",
    "rm -rf /home/anna/work/*",
    "rm -rf \"$PWD/..\"",
    "rm -rf src/../..",
    // Through `cd`.
    "cd / && rm -rf *",
    "cd /; rm -rf .",
    "cd && rm -rf *",
    "cd ~ && rm -rf .",
    "cd .. && rm -rf *",
    "cd ../.. ; rm -rf work",
    "cd -- / && rm -rf ./*",
    "pushd / && rm -rf *",
    "(cd / && rm -rf *)",
    "cd /usr && cd .. && rm -rf *",
    // Through other programs.
    "sudo rm -rf /",
    "sudo -u root rm -rf /",
    "sudo --user root -n rm -rf /",
    "sudo -- rm -rf /",
    "sudo A=1 rm -rf /",
    "doas rm -rf /",
    "env rm -rf /",
    "env -u X A=1 B=2 rm -rf /",
    "nice -n 10 rm -rf /",
    "timeout 10 rm -rf /",
    "timeout -k 1 10s rm -rf /",
    "time rm -rf /",
    "nohup rm -rf / &",
    "setsid rm -rf /",
    "exec rm -rf /",
    "command rm -rf /",
    "builtin command rm -rf /",
    "busybox rm -rf /",
    "sudo env nice timeout 3 rm -rf /",
    "bash -c 'rm -rf /'",
    "bash -lc 'rm -rf /'",
    "sh -e -c \"rm -rf /\"",
    "sh -c \"rm -rf $HOME\"",
    "bash -c \"bash -c 'rm -rf /'\"",
    "cd / && bash -c 'rm -rf *'",
    "su -c 'rm -rf /'",
    "su root -c 'rm -rf /'",
    "eval \"rm -rf /\"",
    "eval rm -rf /",
    "eval 'cd /'; rm -rf *",
    "trap 'rm -rf /' EXIT",
    "watch -n 1 rm -rf /",
    "xargs rm -rf <<< /",
    "xargs -n 1 rm -rf <<< '/ /tmp'",
    "echo / | xargs rm -rf",
    "echo 'rm -rf /' | sh",
    "printf 'rm -rf /' | bash -s",
    "bash <<'EOF'\nrm -rf /\nEOF",
    "bash <<EOF\nrm -rf /\nEOF",
    "cat <<EOF | sh && echo done\nx\nEOF\nrm -rf /",
    "cat <<EOF && rm -rf /\nx\nEOF",
    "cat <<EOF\n$(rm -rf /)\nEOF",
    "find / -delete",
    "find / -type f -delete",
    "find -L / -xdev -delete",
    "find / \\( -type f -o -type l \\) -delete",
    "find ~ -delete",
    "find .. -mindepth 1 -delete",
    "cd / && find -delete",
    "find / -exec rm -rf {} \\;",
    "find / -exec /bin/rm -rf {} +",
    "find . -name x -exec rm -rf / \\;",
    // Wherever it stands.
    "echo $(rm -rf /)",
    "echo `rm -rf /`",
    "echo \"a $(rm -rf /) b\"",
    "cat <(rm -rf /)",
    "x=$(rm -rf /)",
    "X=$(rm -rf /) make",
    "make || rm -rf /",
    "make; rm -rf /",
    "make & rm -rf /",
    "make | rm -rf /",
    "! rm -rf /",
    "{ rm -rf /; }",
    "if true; then rm -rf /; fi",
    "for i in 1 2; do rm -rf /; done",
    "while rm -rf /; do :; done",
    "case x in x) rm -rf /;; esac",
    "f() { rm -rf /; }; f",
    "[ \"$(rm -rf /)\" ]",
    "echo $((1 + $(rm -rf /)))",
    "rm -rf / > /dev/null 2>&1 &",
    "make\nrm -rf /",
    "if true; then rm -rf /",
    "d='a /'; rm -rf \"/\"",
    "rm -rf \\\n /",
    // Disks.
    "dd if=image.iso of=/dev/nvme0n1 bs=4M",
    "dd of=/dev/sdb1",
    "dd if=x of=\"/dev/vda\"",
    "sudo dd if=x of=/dev/mmcblk0",
    "dd if=x of=/dev/disk/by-id/usb-x",
    "dd if=x of=/dev/mapper/root",
    "dd if=x of=/dev/loop0",
    "dd if=x of=/dev/../dev/xvda",
    "cd /dev && dd if=x of=sda",
    "mkfs.ext4 /dev/sda1",
    "mkfs -t xfs /dev/nvme0n1p1",
    "mke2fs /dev/sdb",
    "wipefs -a /dev/sda",
    "echo x > /dev/sda",
    "cat image >> /dev/nvme0n1",
    "> /dev/sda",
    "> /dev/sda cat image",
    "nohup cat image > /dev/sda &",
    "{ cat a; cat b; } > /dev/vdb",
    "cat image | sudo tee /dev/sda",
    "shred /dev/sda",
    "cp image.iso /dev/sdb",
    "blkdiscard /dev/nvme0n1",
    // Bombs.
    "bomb() { bomb | bomb & }; bomb",
    "function f { f|f& }; f",
    "f() { f | f; }; f",
    "bash -c ':(){ :|:& };:'",
    "b(){ b|sh -c x|b& };b",
];

const ALLOWED: &[&str] = &[
    // Words that are only words.
    "echo 'rm -rf /'",
    "echo rm -rf /",
    "echo \"rm -rf /\" > notes.txt",
    "printf '%s' 'rm -rf /'",
    "grep \"rm -rf /\" file",
    "grep -rn 'dd if=' src",
    "git commit -m \"rm -rf /\"",
    "git log --grep=':(){ :|:& };:'",
    "cat <<EOF\nrm -rf /\nEOF",
    "cat > x.sh <<'EOF'\nrm -rf /\nEOF",
    "# rm -rf /",
    "ls # rm -rf /",
    "man rm",
    "which rm",
    "command -v rm",
    "alias x='rm -i'",
    "rg -e 'rm -rf ~' docs",
    "sed -i 's/rm -rf \\///' x.sh",
    "python3 -c 'print(\"rm -rf /\")'",
    "echo / | xargs ls",
    "ls / && rm -f x",
    // Ordinary removals.
    "rm file",
    "rm -f /",
    "rm -rf /tmp/x",
    "rm -rf /tmp/*",
    "rm -rf ./build",
    "rm -rf target",
    "rm -rf target/ dist/ node_modules/",
    "rm -rf -- -odd",
    "rm -rf .",
    "rm -rf ./*",
    "rm -rf *",
    "rm -rf \"$PWD\"",
    "rm -rf \"$PWD/build\"",
    "rm -rf \"$TMPDIR\"",
    "rm -rf $X/*",
    "rm -rf ~/work/shop/build",
    "rm -rf ~/.cache/pip",
    "rm -rf $HOME/.cache/x",
    "rm -rf \"$HOME/work/shop/target\"",
    "rm -rf '~'",
    "rm -rf \\~",
    "rm -rf '$HOME'",
    "rm -rf '/*x'",
    "rm -rf ./~",
    "rm -rf src/../build",
    "rm -rf ../other",
    "rm -rf ../other/*",
    "rm -rf *.o **/*.pyc",
    "rm -rf /var/lib/apt/lists/*",
    "rm -rf /home/anna/work/other",
    "rm -rf /home/bob",
    "rm -r build && mkdir build",
    "HOME=/tmp/x; rm -rf $HOME",
    "export HOME=/tmp/x && rm -rf \"$HOME\"",
    "d=build; rm -rf \"$d\"",
    "d='/ x'; rm -rf \"$d\"",
    "for d in a b; do rm -rf \"$d\"; done",
    "d=/; for d in a b; do rm -rf $d; done",
    "cd build && rm -rf *",
    "cd /tmp/x && rm -rf *",
    "(cd / && ls) && rm -rf *",
    "cd / | cat; rm -rf *",
    "bash -c 'cd /' && rm -rf *",
    "cd / && cd - && rm -rf *",
    "cd \"$X\" && rm -rf *",
    "sudo rm -rf /opt/old",
    "bash -c 'rm -rf build'",
    "sh build.sh /",
    "xargs rm -rf <<< build",
    "find . -name '*.pyc' -delete",
    "find / -name core -delete",
    "find ~ -name '*.tmp' -exec rm {} \\;",
    "find . -delete",
    "find build -type f -exec rm -f {} +",
    "find / -name x",
    "find / ! -name '*.rs' -delete",
    "find . -type d -empty -delete",
    "rmdir /tmp/x",
    "git rm -rf --cached .",
    "git clean -fdx",
    "docker run --rm -it alpine ls /",
    "npm rm -rf x",
    "trap 'rm -rf \"$tmp\"' EXIT",
    "tmp=$(mktemp -d); rm -rf \"$tmp\"",
    // Disks that are only files, or only read.
    "dd if=/dev/zero of=file bs=1M count=10",
    "dd if=/dev/sda of=backup.img",
    "dd if=/dev/urandom of=/dev/null",
    "dd of=sda if=x",
    "mkfs.ext4 disk.img",
    "mkfs.ext4 --help",
    "wipefs /dev/sda",
    "lsblk /dev/sda",
    "cat /dev/sda1 > image",
    "cp /dev/sda image",
    "echo x > /dev/null",
    "echo x > /dev/stderr",
    "echo x > /dev/shm/x",
    "echo x > dev/sda",
    "make 2>&1 | tee build.log",
    "shred secret.txt",
    "ls /dev/sd*",
    "fdisk -l /dev/sda",
    // Functions that are no bombs.
    "f() { echo | cat & }; f",
    "walk() { for d in *; do walk \"$d\"; done; }; walk",
    "sort2() { sort2 a & sort2 b & wait; }",
    "f() { g | g; }; f",
    ": | : &",
    "x | x",
    // Things that cannot be told.
    "$(echo rm) -rf /tmp/x",
    "rm -rf $(cat list)",
    "rm -rf ~bob/x",
    "rm -rf",
    "rm",
    "",
    "   ",
];

fn refusal(command: &str) -> Option<String> {
    let shop = Path::new("/home/anna/work/shop");
    let places = Places { workspace: shop, home: Some(Path::new("/home/anna")), folder: shop };
    CommandLine::read(command).refusal(&places)
}

#[test]
fn what_nobody_can_want_is_refused() {
    for command in REFUSED {
        let refused = refusal(command).unwrap_or_else(|| panic!("{command:?} is let through"));
        assert!(refused.starts_with("Dangerous command blocked: "), "{refused}");
        assert!(!refused.contains("/home/anna/work/shop"), "{refused}");
    }
}

#[test]
fn ordinary_work_is_not_refused() {
    for command in ALLOWED {
        assert_eq!(refusal(command), None, "{command:?}");
    }
}

#[test]
fn the_tables_are_what_they_say() {
    assert!(REFUSED.len() + ALLOWED.len() > 250);
    assert!(!REFUSED.iter().any(|command| ALLOWED.contains(command)));
}

#[test]
fn the_sentence_says_what_would_go_and_what_to_do() {
    let told = |command| refusal(command).unwrap_or_default();
    assert_eq!(
        told("rm -rf /"),
        "Dangerous command blocked: `rm` would delete the whole system (`/`); name what should go, inside the workspace"
    );
    assert!(told("rm -rf ~").contains("the home folder"), "{}", told("rm -rf ~"));
    assert!(told("rm -rf ..").contains("a folder that the workspace lies in"), "{}", told("rm -rf .."));
    assert!(told("dd of=/dev/sda").contains("`dd` would write over a disk"), "{}", told("dd of=/dev/sda"));
}

#[test]
fn places_decide() {
    let command = CommandLine::read("rm -rf *");
    let refused = |workspace: &str, home: Option<&str>, folder: &str| {
        let places = Places { workspace: Path::new(workspace), home: home.map(Path::new), folder: Path::new(folder) };
        command.refusal(&places).is_some()
    };
    assert!(!refused("/srv/shop", Some("/root"), "/srv/shop"));
    assert!(!refused("/srv/shop", Some("/root"), "/srv/shop/src"));
    assert!(refused("/srv/shop", Some("/root"), "/srv"));
    assert!(refused("/srv/shop", None, "/"));
    assert!(refused("/root", Some("/root"), "/root"), "a workspace that is the home folder");
    assert!(refused("/srv/[a]/*/shop", None, "/srv/[a]/*"), "names with signs that patterns use");
    assert!(!refused("/srv/a/shop", None, "/srv/[a]"), "a name that is no pattern");
}
