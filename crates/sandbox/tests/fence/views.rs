//! What a fenced command sees, and where what it writes ends up.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, symlink};

use haft_sandbox::Root;
use haft_sandbox::fence::{FenceJob, LayeredFolder, Mask, MaskContent, Rung, WorkspaceView};

use crate::world::{Who, World, run_here};

#[test]
fn what_it_writes_into_the_workspace_is_the_owners() {
    for who in Who::all() {
        let world = World::new(*who);
        let answer = world.run(&world.job("echo new > made; cat made"));
        assert_eq!((answer.stdout.as_str(), answer.exit.as_str()), ("new\n", "Code(0)"), "{who:?} {answer:?}");
        let made = fs::metadata(world.workspace.join("made")).unwrap();
        assert_eq!(made.uid(), fs::metadata(&world.workspace).unwrap().uid(), "{who:?}");
    }
}

#[test]
fn it_never_runs_as_root() {
    for who in Who::all() {
        let world = World::new(*who);
        let answer = world.run(&world.job("id -u; id -g; id -G"));
        assert!(answer.stdout.split_whitespace().all(|id| id != "0"), "{who:?} {answer:?}");
        assert_eq!(answer.stdout.lines().count(), 3, "{answer:?}");
    }
}

#[test]
fn whoever_it_runs_as_has_a_name() {
    for who in Who::all() {
        let world = World::new(*who);
        let script = "id -un && id -gn && whoami && python3 -c 'import pwd, grp, os
user = pwd.getpwuid(os.getuid())
print(user.pw_name, user.pw_dir, grp.getgrgid(os.getgid()).gr_name)' && getent passwd root && ls ~ && echo x >> /etc/passwd";
        let answer = world.run(&world.job(script));
        let lines: Vec<&str> = answer.stdout.lines().collect();
        assert_eq!(lines.len(), 5, "{who:?} {answer:?}");
        assert_eq!((lines[0], lines[1]), (lines[2], lines[0]), "{who:?} {answer:?}");
        assert!(lines[4].starts_with("root:"), "{who:?} {answer:?}");
        let unknown = fs::read_to_string("/etc/passwd").unwrap();
        assert!(!unknown.contains("/home/fenced"), "the system's own file is as it was");
        if rustix::process::geteuid().is_root() {
            assert_eq!(lines[3], "haft /home/fenced haft", "{who:?} {answer:?}");
        }
    }
}

#[test]
fn a_read_only_workspace_cannot_be_written() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            world.file("old", "old");
            let script = "cat old; echo x > old && echo WRITTEN; echo x > new && echo WRITTEN; rm -f old && echo GONE; mkdir d && echo MADE";
            let answer = world.run(&FenceJob { view: WorkspaceView::ReadOnly, rung, ..world.job(script) });
            assert_eq!(answer.stdout, "old", "{rung:?} {who:?} {answer:?}");
        }
    }
}

#[test]
fn a_layer_takes_all_changes() {
    for who in Who::all() {
        let world = World::new(*who);
        world.file("kept", "kept");
        world.file("changed", "before");
        world.file("gone", "gone");
        world.file("deep/below/file", "below");
        let layer = world.layer("layer");
        let script = "echo after > changed; rm gone; rm -r deep; mkdir deep; echo new > deep/new; mv kept moved; cat changed moved; ls";
        let answer = world.run(&FenceJob { view: WorkspaceView::Aside { layer: layer.clone() }, ..world.job(script) });
        assert_eq!(answer.stdout, "after\nkeptchanged\ndeep\nmoved\n", "{who:?} {answer:?}");
        assert_eq!(fs::read_to_string(world.workspace.join("changed")).unwrap(), "before");
        assert_eq!(fs::read_to_string(world.workspace.join("deep/below/file")).unwrap(), "below");
        let upper = layer.join("upper");
        assert_eq!(fs::read_to_string(upper.join("changed")).unwrap(), "after\n");
        assert_eq!(fs::read_to_string(upper.join("deep/new")).unwrap(), "new\n");
        let owner = fs::metadata(&world.workspace).unwrap().uid();
        assert_eq!(fs::metadata(upper.join("changed")).unwrap().uid(), owner, "{who:?}");
        assert_eq!(fs::symlink_metadata(upper.join("gone")).unwrap().rdev(), 0);
    }
}

#[test]
fn a_layer_can_be_used_again() {
    for who in Who::all() {
        let world = World::new(*who);
        world.file("count", "");
        let job = FenceJob {
            view: WorkspaceView::Aside { layer: world.layer("layer") },
            ..world.job("echo x >> count; wc -l < count")
        };
        let counts = [1, 2, 3].map(|_| world.run(&job).stdout);
        assert_eq!(counts, ["1\n", "2\n", "3\n"], "{who:?}");
        // Its owner can remove it.
        fs::remove_dir_all(world.layer("layer")).unwrap();
    }
}

/// Only root can mount something; the fence is then asked for in the namespace where it is.
#[test]
fn a_mount_inside_is_told_instead_of_missing() {
    for who in Who::all().iter().filter(|_| rustix::process::geteuid().is_root()) {
        let world = World::new(*who);
        world.file("a mount/file", "");
        let job = FenceJob { view: WorkspaceView::Aside { layer: world.layer("layer") }, ..world.job("ls") };
        let place = world.workspace.join("a mount");
        rustix::mount::mount("none", &place, "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
        let answer = world.run(&job);
        let direct = world.run(&world.job("ls 'a mount'; echo seen"));
        rustix::mount::unmount(&place, rustix::mount::UnmountFlags::DETACH).unwrap();
        assert!(answer.exit.contains("is mounted inside it"), "{who:?} {answer:?}");
        assert_eq!(direct.stdout, "seen\n", "{who:?} {direct:?}");
        assert_eq!(world.run(&job).stdout, "a mount\n", "{who:?}");
    }
}

#[test]
fn layers_lie_over_many_folders_or_none() {
    for who in Who::all() {
        let world = World::new(*who);
        let (above, below) = (world.beside("above"), world.beside("below"));
        for (folder, name) in [(&above, "a"), (&above, "both"), (&below, "b"), (&below, "both")] {
            fs::write(folder.join(name), folder.file_name().unwrap().to_str().unwrap()).unwrap();
        }
        let cache = LayeredFolder {
            at: "/cache".into(),
            beneath: vec![above, below.clone()],
            layer: world.layer("one"),
            own_work: None,
        };
        let empty = LayeredFolder { at: "/tmp".into(), beneath: vec![], layer: world.layer("two"), own_work: None };
        let layered = vec![cache.clone(), empty.clone()];
        let script = "cat /cache/a /cache/b /cache/both; echo; echo 1 > /cache/new; echo 2 > /tmp/new";
        let answer = world.run(&FenceJob { layered, ..world.job(script) });
        assert_eq!(answer.stdout, "abovebelowabove\n", "{who:?} {answer:?}");
        assert_eq!(fs::read_to_string(cache.layer.join("upper/new")).unwrap(), "1\n");
        assert_eq!(fs::read_to_string(empty.layer.join("upper/new")).unwrap(), "2\n");
        assert!(!below.join("new").exists());
    }
}

#[test]
fn folders_may_lie_in_one_another() {
    for who in Who::all() {
        let world = World::new(*who);
        world.file("inner/file", "inner");
        world.file("project/file", "project");
        let home = world.workspace.clone();
        // The workspace is the home folder, and something in it may only be read.
        let mut job = world.job("cat inner/file; echo x > inner/file || echo held; echo y > beside; cat beside");
        job.readable = vec![home.join("inner")];
        job.environment.push(("HOME".to_owned(), home.to_str().unwrap().to_owned()));
        assert_eq!(world.run(&job).stdout, "innerheld\ny\n", "{who:?}");
        // The workspace lies below something that may only be read.
        let mut job = world.job("cat ../inner/file; echo x > ../inner/file || echo held; echo y > beside; cat beside");
        job.workspace = home.join("project");
        job.folder = home.join("project");
        job.readable = vec![home.clone()];
        assert_eq!(world.run(&job).stdout, "innerheld\ny\n", "{who:?}");
        // And below the home folder, of which nothing else is seen.
        let mut job = world.job("ls ..; echo z > ~/private; ls ~");
        job.workspace = home.join("project");
        job.folder = home.join("project");
        job.environment[1].1 = home.to_str().unwrap().to_owned();
        assert_eq!(world.run(&job).stdout, "project\nprivate\nproject\n", "{who:?}");
        assert!(!home.join("private").exists());
    }
}

#[test]
fn what_is_hidden_is_hidden_wherever_it_lies() {
    for who in Who::all() {
        let world = World::new(*who);
        let mut hidden =
            vec![world.file(".env", "SECRET"), world.file("data/key", "SECRET"), world.workspace.join("absent")];
        hidden[1].pop();
        let tools = world.beside("tools");
        fs::write(tools.join("token"), "SECRET").unwrap();
        hidden.push(tools.join("token"));
        world.file("real", "SECRET");
        symlink("real", world.workspace.join("inside")).unwrap();
        symlink("/etc/passwd", world.workspace.join("outward")).unwrap();
        hidden.extend([world.workspace.join("inside"), world.workspace.join("outward")]);
        let views =
            [WorkspaceView::ReadOnly, WorkspaceView::Direct, WorkspaceView::Aside { layer: world.layer("layer") }];
        for view in views {
            let script = format!(
                "cat .env data/* real inside {0}/token; ls data; cd /proc/self/cwd && cat .env; mv data d2 2>/dev/null; cat d2/key; head -c4 /etc/passwd",
                tools.display()
            );
            let job = FenceJob { view, hidden: hidden.clone(), readable: vec![tools.clone()], ..world.job(&script) };
            let answer = world.run(&job);
            assert!(!answer.stdout.contains("SECRET"), "{who:?} {:?} {answer:?}", job.view);
            assert!(answer.stdout.ends_with("root"), "a link outward hides nothing: {who:?} {answer:?}");
        }
    }
}

#[test]
fn secrets_are_masked_in_every_view_of_the_workspace() {
    for who in Who::all() {
        let world = World::new(*who);
        for (path, content) in
            [("sub/.env", "SECRET"), ("changed.key", "SECRET"), ("same.pem", "shown\n"), (".ssh/config", "SECRET")]
        {
            world.file(path, content);
        }
        let root = Root::open(&world.workspace, &[]).unwrap();
        let mask = |path: &str, content| Mask { place: root.place_called(path).unwrap(), content };
        let head = |bytes: &str, is_same| MaskContent::Head {
            bytes: bytes.as_bytes().to_vec(),
            mode: 0o640,
            modified: (1, 0),
            is_same,
        };
        let masks = vec![
            mask("sub/.env", MaskContent::Nothing),
            mask("changed.key", head("committed\n", false)),
            mask("same.pem", head("shown\n", true)),
            mask(".ssh", MaskContent::Nothing),
            mask("gone/.env", MaskContent::Nothing),
        ];
        let script = "cat changed.key same.pem; cat sub/.env .ssh/config; cp -r . /tmp/copy; cat /tmp/copy/sub/.env; \
            (rm -rf sub/.env .ssh; ln sub/.env l; umount changed.key; mv sub s2 && cat s2/.env; mv s2 sub) 2>/dev/null; \
            cat l .ssh/config; echo mine > changed.key; echo end";
        for (view, rung) in [
            (WorkspaceView::Aside { layer: world.layer("layer") }, Rung::Namespaces),
            (WorkspaceView::ReadOnly, Rung::Namespaces),
            (WorkspaceView::Direct, Rung::Namespaces),
            (WorkspaceView::Direct, Rung::Landlock),
        ] {
            if rung == Rung::Landlock && !Who::at(rung).any(|one| one == *who) {
                continue;
            }
            let job = FenceJob { view, rung, masks: masks.clone(), ..world.job(script) };
            let (_, stdout, stderr) = run_here(&world, &job).unwrap();
            let shown = match rung {
                Rung::Namespaces => "committed\nshown\nend\n",
                Rung::Landlock => "shown\nend\n",
            };
            assert_eq!(stdout, shown, "{who:?} {:?} {rung:?}: {stderr}", job.view);
            assert!(!stderr.contains("SECRET"), "{who:?} {:?} {rung:?}: {stderr}", job.view);
            let is_absent = matches!(job.view, WorkspaceView::Aside { .. });
            assert_eq!(stderr.contains("cat: sub/.env: No such file"), is_absent, "{who:?} {:?}: {stderr}", job.view);
            for (path, content) in [("sub/.env", "SECRET"), ("changed.key", "SECRET"), (".ssh/config", "SECRET")] {
                assert_eq!(fs::read_to_string(world.workspace.join(path)).unwrap(), content, "{who:?} {path}");
            }
        }
    }
}

#[test]
fn declared_folders_outside_can_be_written() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            let declared = world.beside("declared");
            let script = format!("echo x > {0}/made && cat {0}/made", declared.display());
            let answer = world.run(&FenceJob { writable: vec![declared], rung, ..world.job(&script) });
            assert_eq!(answer.stdout, "x\n", "{rung:?} {who:?} {answer:?}");
        }
    }
}

#[test]
fn the_network_is_there_only_when_asked_for() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3; test -r /etc/resolv.conf && echo names");
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            let off = world.run(&FenceJob { rung, ..world.job(&script) });
            assert!(!off.stdout.contains("hello"), "{rung:?} {who:?} {off:?}");
            let (on, _) = std::thread::scope(|threads| {
                let greet = threads.spawn(|| listener.accept().unwrap().0.write_all(b"hello\n").unwrap());
                (world.run(&FenceJob { rung, network: true, ..world.job(&script) }), greet.join().unwrap())
            });
            assert!(on.stdout.starts_with("hello\n"), "{rung:?} {who:?} {on:?}");
            assert_eq!(on.stdout.contains("names"), fs::File::open("/etc/resolv.conf").is_ok(), "{rung:?} {who:?}");
        }
    }
}

#[test]
fn processes_inside_reach_one_another() {
    let script = "import socket, threading
server = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()
print(socket.create_connection(server.getsockname()).recv(5))";
    for who in Who::all() {
        let world = World::new(*who);
        let job = FenceJob { command: ["/usr/bin/python3", "-c", script].map(str::to_owned).to_vec(), ..world.job("") };
        let answer = world.run(&job);
        assert_eq!(answer.stdout, "b'hello'\n", "{who:?} {answer:?}");
    }
}

#[test]
fn everything_of_the_standard_input_arrives() {
    for stdin in [Vec::new(), b"some\0bytes".to_vec(), vec![b'x'; 3 << 20]] {
        let world = World::new(Who::all()[0]);
        let answer =
            world.run(&FenceJob { stdin: stdin.clone(), ..world.job("wc -c; echo y > /dev/stdin && echo CHANGED") });
        assert_eq!(answer.stdout, format!("{}\n", stdin.len()), "{answer:?}");
    }
}

#[test]
fn nothing_but_three_descriptors_and_the_own_environment_is_inherited() {
    // One that would be inherited, if the fence did not see to it.
    let mut leak = fs::File::open("/etc/hostname").unwrap();
    let _ = leak.read(&mut [0]);
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            let job = FenceJob { command: vec!["/usr/bin/env".to_owned()], rung, ..world.job("") };
            assert_eq!(world.run(&job).stdout.lines().count(), 3, "{rung:?} {who:?}");
            let job = FenceJob { command: ["/bin/ls", "/proc/self/fd"].map(str::to_owned).to_vec(), ..job };
            assert_eq!(world.run(&job).stdout, "0\n1\n2\n3\n", "{rung:?} {who:?}, of which the last is its own");
        }
    }
}
