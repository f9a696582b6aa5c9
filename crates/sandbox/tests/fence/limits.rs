//! What happens when a command takes more than it may.

use haft_sandbox::fence::{Bound, FenceJob, FenceLimits, LayeredFolder, Rung, WorkspaceView};

use crate::world::{Answer, Who, World, alive};

fn run(who: Who, rung: Rung, limits: FenceLimits, program: &str) -> Answer {
    let world = World::new(who);
    let command = ["/usr/bin/python3", "-c", program].map(str::to_owned).to_vec();
    let answer = world.run(&FenceJob { command, limits, rung, ..world.job("") });
    assert!(alive(program).is_empty(), "nothing of it is left");
    answer
}

fn everywhere(limits: &FenceLimits, program: &str, bound: Bound) {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let answer = run(who, rung, limits.clone(), program);
            assert_eq!(answer.bound, Some(bound), "{rung:?} {who:?} {answer:?}");
        }
    }
}

#[test]
fn a_fork_bomb_ends() {
    let program = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n# bomb of forks";
    everywhere(&FenceLimits { processes: 60, ..FenceLimits::default() }, program, Bound::Processes);
}

#[test]
fn a_bomb_of_threads_ends() {
    let program = "import threading\nwhile True:\n    try: threading.Thread(target=threading.Event().wait).start()\n    except RuntimeError: pass\n# bomb of threads";
    everywhere(&FenceLimits { processes: 60, ..FenceLimits::default() }, program, Bound::Processes);
}

#[test]
fn a_memory_bomb_ends() {
    let program = "kept = []\nwhile True: kept.append(bytearray(b'x' * (4 << 20)))\n# bomb of memory";
    everywhere(&FenceLimits { memory: 200 << 20, ..FenceLimits::default() }, program, Bound::Memory);
}

#[test]
fn memory_in_many_processes_counts_together() {
    let program = "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        kept = bytearray(b'x' * (20 << 20)); time.sleep(60)\ntime.sleep(60)\n# many small ones";
    everywhere(&FenceLimits { memory: 200 << 20, ..FenceLimits::default() }, program, Bound::Memory);
}

#[test]
fn memory_without_a_process_counts() {
    let program = "import os, time\nfile = os.memfd_create('x')\nfor _ in range(100): os.write(file, b'x' * (4 << 20))\ntime.sleep(60)\n# memory in a file";
    everywhere(&FenceLimits { memory: 200 << 20, ..FenceLimits::default() }, program, Bound::Memory);
}

#[test]
fn shared_memory_counts_once() {
    let program = "import os, mmap\nkept = mmap.mmap(-1, 100 << 20)\nkept.write(b'x' * (100 << 20))\nfor _ in range(6):\n    if os.fork() == 0:\n        import time; kept[:]; time.sleep(0.5); os._exit(0)\nfor _ in range(6): os.wait()\nprint('fits')";
    let limits = FenceLimits { memory: 900 << 20, ..FenceLimits::default() };
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let answer = run(who, rung, limits.clone(), program);
            assert_eq!((answer.stdout.as_str(), answer.bound), ("fits\n", None), "{rung:?} {who:?} {answer:?}");
        }
    }
}

#[test]
fn processor_time_ends() {
    everywhere(&FenceLimits { cpu_seconds: 1, ..FenceLimits::default() }, "while True: pass\n# busy", Bound::Cpu);
}

#[test]
fn a_file_that_is_too_large_ends() {
    let program = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('sub', 'wb').write(b'x' * (4 << 20))\n# large file";
    everywhere(&FenceLimits { file_size: 1 << 20, ..FenceLimits::default() }, program, Bound::Disk);
}

#[test]
fn a_shell_s_word_for_a_limit_is_taken_only_with_the_limit_itself() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            for (script, exit) in [("exit 152", "Code(152)"), ("exit 153", "Code(153)"), ("exit 137", "Code(137)")] {
                let world = World::new(who);
                let answer = world.run(&FenceJob { rung, ..world.job(script) });
                assert_eq!((answer.exit.as_str(), answer.bound), (exit, None), "{rung:?} {who:?} {answer:?}");
            }
            let world = World::new(who);
            let answer = world.run(&FenceJob { rung, ..world.job("kill -XCPU $$") });
            assert_eq!((answer.exit.as_str(), answer.bound), ("Signal(24)", None), "{rung:?} {who:?} {answer:?}");
            let limits = FenceLimits { cpu_seconds: 1, ..FenceLimits::default() };
            let busy = "bash -c 'while :; do :; done'; exit $?";
            let answer = world.run(&FenceJob { rung, limits, ..world.job(busy) });
            assert_eq!((answer.exit.as_str(), answer.bound), ("Code(152)", Some(Bound::Cpu)), "{who:?} {answer:?}");
        }
    }
    for who in Who::all() {
        let world = World::new(*who);
        let limits = FenceLimits { file_size: 1 << 20, ..FenceLimits::default() };
        let view = WorkspaceView::Aside { layer: world.layer("layer") };
        let answer = world.run(&FenceJob { view, limits, ..world.job("head -c 4M /dev/zero > large; exit $?") });
        assert_eq!((answer.exit.as_str(), answer.bound), ("Code(153)", Some(Bound::Disk)), "{who:?} {answer:?}");
    }
}

#[test]
fn a_disk_bomb_ends() {
    let bytes = "i = 0\nwhile True:\n    open('f%d' % i, 'wb').write(b'x' * (1 << 20)); i += 1\n# bomb of bytes";
    let files = "i = 0\nwhile True:\n    open('f%d' % i, 'wb').close(); i += 1\n# bomb of files";
    let quick = "for i in range(30): open('f%d' % i, 'wb').write(b'x' * (1 << 20))";
    let limits = FenceLimits { written_bytes: 20 << 20, written_files: 200, ..FenceLimits::default() };
    for who in Who::all() {
        for program in [bytes, files, quick] {
            let world = World::new(*who);
            let command = ["/usr/bin/python3", "-c", program].map(str::to_owned).to_vec();
            let job = FenceJob { command, limits: limits.clone(), ..world.job("") };
            let aside =
                world.run(&FenceJob { view: WorkspaceView::Aside { layer: world.layer("layer") }, ..job.clone() });
            assert_eq!(aside.bound, Some(Bound::Disk), "{who:?} {aside:?}");
            let layered = vec![LayeredFolder {
                at: "/cache".into(),
                beneath: Vec::new(),
                layer: world.layer("cache"),
                own_work: None,
            }];
            let cache = world.run(&FenceJob { layered, folder: "/cache".into(), ..job });
            assert_eq!(cache.bound, Some(Bound::Disk), "{who:?} {cache:?}");
        }
    }
}

#[test]
fn a_full_folder_in_memory_takes_nothing_more() {
    for who in Who::all() {
        let world = World::new(*who);
        let limits = FenceLimits { memory: 64 << 20, ..FenceLimits::default() };
        let script =
            "for place in /tmp /var/tmp /dev/shm ~; do head -c 100M /dev/zero > $place/x; stat -c %s $place/x; done";
        let answer = world.run(&FenceJob { limits, ..world.job(script) });
        let sizes: Vec<u64> = answer.stdout.lines().map(|line| line.parse().unwrap()).collect();
        assert!(sizes.len() == 4 && sizes.iter().sum::<u64>() <= 64 << 20, "{who:?} {answer:?}");
    }
}
