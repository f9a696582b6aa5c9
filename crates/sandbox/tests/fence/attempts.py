"""Attempts to get out of the fence. Each says `held NAME` or `ESCAPED NAME`; anything else is a broken attempt."""
import ctypes, errno, fcntl, os, signal, socket, subprocess, sys, tempfile, time

OUT = os.environ["OUT"]            # a folder outside that everybody may write
PID = int(os.environ["PID"])       # a process outside, of the same user where there is one
ABSTRACT = os.environ["ABSTRACT"]  # an abstract socket outside
PORT = int(os.environ["PORT"])     # a TCP port of this machine
RUNG = os.environ["RUNG"]
VIEW = os.environ["VIEW"]
WORKSPACE = os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
attempts = []


def attempt(rungs="namespaces landlock bare", views="direct aside"):
    def add(run):
        if RUNG in rungs.split() and VIEW in views.split():
            attempts.append(run)
        return run
    return add


class Held(Exception):
    pass


def syscall(number, *arguments):
    """Calls the kernel; fails as it does."""
    values = [a if isinstance(a, bytes) or a is None else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def refused(number, *arguments):
    """Whether a call is let through, even if the kernel then says no for another reason."""
    try:
        syscall(number, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise Held()
    return True


def reads(path):
    with open(path, "rb") as file:
        return file.read(64)


def writes(path, flags=os.O_WRONLY):
    os.close(os.open(path, flags | os.O_NONBLOCK, 0o644))
    return True


# Reading what lies outside. All of it is open to everybody as far as its mode goes.
SECRET = OUT + "/secret"

@attempt()
def read_outside(): return reads(SECRET)
@attempt()
def read_outside_by_link(): return reads("link-out")
@attempt()
def read_outside_by_new_link():
    os.symlink(SECRET, "new-link")
    try: return reads("new-link")
    finally: os.unlink("new-link")
@attempt()
def read_outside_by_dots(): return reads("../outside/secret")
@attempt("namespaces")
def read_outside_by_first_process(): return reads("/proc/1/root" + SECRET)
@attempt()
def read_outside_by_own_root(): return reads("/proc/self/root" + SECRET)
@attempt()
def read_outside_by_parent_root(): return reads("/proc/%d/root%s" % (os.getppid(), SECRET))
@attempt()
def read_outside_by_parent_cwd(): return reads("/proc/%d/cwd/../outside/secret" % os.getppid())
@attempt()
def read_outside_by_other_process(): return reads("/proc/%d/root%s" % (PID, SECRET))
@attempt("namespaces landlock")
def hold_memory_in_a_segment():
    number = syscall(29 if os.uname().machine == "x86_64" else 194, 0, 1 << 20, 0o1600)
    return number >= 0
@attempt()
def list_outside(): return os.listdir(OUT)
@attempt("namespaces")
def see_outside(): return os.stat(SECRET)
@attempt("namespaces landlock")
def list_root_home(): return os.listdir("/root")
@attempt("namespaces landlock")
def list_homes(): return [name for name in os.listdir("/home") if name != "fenced"]
@attempt("namespaces landlock")
def list_var(): return [name for name in os.listdir("/var") if name != "tmp"]
@attempt("namespaces landlock")
def list_run(): return [name for name in os.listdir("/run") if name != "hidden"]
@attempt("namespaces landlock")
def list_boot(): return os.listdir("/boot")
@attempt("namespaces landlock")
def list_sys(): return os.listdir("/sys")
@attempt("namespaces landlock")
def read_shadow(): return reads("/etc/shadow")
@attempt("namespaces landlock")
def read_sudoers(): return reads("/etc/sudoers")
@attempt("namespaces landlock")
def read_tls_keys(): return os.listdir("/etc/ssl/private")
@attempt("namespaces landlock")
def read_host_keys(): return reads("/etc/ssh/ssh_host_ed25519_key")
@attempt("namespaces landlock")
def see_hidden_file(): return reads(".env")
@attempt("namespaces landlock")
def see_hidden_by_cwd(): return reads("/proc/self/cwd/.env")
@attempt("namespaces landlock")
def see_hidden_folder(): return reads("private/key")
@attempt("namespaces landlock")
def see_hidden_by_hard_link():
    os.link(".env", "copy")
    return reads("copy")
@attempt("namespaces landlock")
def see_hidden_by_rename():
    os.rename(".env", "moved")
    return reads("moved")
@attempt("namespaces landlock")
def see_hidden_by_folder_rename():
    os.rename("private", "moved")
    return reads("moved/key")
@attempt("namespaces landlock")
def change_hidden_mode():
    os.chmod(".env", 0o777)
    return reads(".env")
@attempt("namespaces landlock")
def unmount_mask():
    if libc.umount2(b".env", 2) != 0: raise Held()
    return True

# Other processes.
@attempt()
def environment_of_others():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"MARK_OF_OUTSIDE" in open("/proc/%s/environ" % pid, "rb").read(): return pid
        except OSError: pass
    raise Held()
@attempt("namespaces")
def see_other_processes(): return [pid for pid in os.listdir("/proc") if pid.isdigit() and b"MARK_OF_OUTSIDE" in reads("/proc/%s/cmdline" % pid)]
@attempt("namespaces")
def job_in_arguments(): return b"OUT" in open("/proc/1/cmdline", "rb").read() or len(open("/proc/1/cmdline", "rb").read().split(b"\0")) > 3
@attempt("namespaces landlock")
def memory_of_keeper(): return os.open("/proc/%d/mem" % os.getppid(), os.O_RDWR)
@attempt("namespaces landlock")
def maps_of_keeper(): return open("/proc/%d/maps" % os.getppid()).read()
@attempt("namespaces landlock")
def files_of_keeper(): return os.listdir("/proc/%d/fd" % os.getppid())
@attempt("namespaces landlock")
def environment_of_keeper(): return open("/proc/%d/environ" % os.getppid()).read() is not None
@attempt("namespaces landlock")
def trace_keeper():
    if libc.ptrace(16, os.getppid(), 0, 0) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def seize_keeper():
    if libc.ptrace(0x4206, os.getppid(), 0, 0) != 0: raise Held()
    return True
@attempt()
def trace_outside():
    if libc.ptrace(0x4206, PID, 0, 0) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def read_memory_of_keeper():
    buffer = ctypes.create_string_buffer(8)
    class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    local, remote = Vec(ctypes.addressof(buffer), 8), Vec(0x400000, 8)
    if libc.process_vm_readv(os.getppid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) < 0 and ctypes.get_errno() == errno.EPERM: raise Held()
    return True
@attempt()
def signal_outside(): os.kill(PID, 0); return True
@attempt("namespaces")
def stop_first_process():
    os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGTERM)
    state = open("/proc/1/stat").read().rsplit(")", 1)[1].split()[0]
    return state not in "SR"
@attempt("landlock")
def stop_keeper(): os.kill(os.getppid(), signal.SIGKILL); return True
@attempt("namespaces landlock")
def take_descriptor_of_keeper():
    pidfd = syscall(434, os.getppid(), 0)
    return refused(438, pidfd, 0, 0)
@attempt("namespaces landlock")
def limits_of_keeper():
    import resource
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (10, 10))
    return True
@attempt("namespaces landlock")
def slow_keeper(): os.setpriority(os.PRIO_PROCESS, os.getppid(), 19); return True
@attempt("namespaces landlock")
def slow_all_of_user(): os.setpriority(os.PRIO_USER, os.getuid(), 19); return True
@attempt("namespaces landlock")
def idle_keeper(): os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)); return True
@attempt("namespaces landlock")
def bind_keeper(): os.sched_setaffinity(os.getppid(), [0]); return True
@attempt("namespaces landlock")
def delay_keeper(): return refused(251 if X86 else 30, 1, os.getppid(), 3 << 13)
@attempt("namespaces landlock")
def delay_all_of_user(): return refused(251 if X86 else 30, 3, os.getuid(), 3 << 13)
@attempt("namespaces landlock")
def raise_own_limit():
    import resource
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    try: resource.setrlimit(resource.RLIMIT_NPROC, (limit + 1, limit + 1))
    except ValueError: raise Held()
    return True

# The kernel's own files.
for name in ["sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/vm/drop_caches", "sys/kernel/hostname", "sys/fs/binfmt_misc/register", "sys/kernel/yama/ptrace_scope", "self/uid_map", "irq/0/smp_affinity"]:
    def write_proc(name=name): return writes("/proc/" + name)
    write_proc.__name__ = "write_proc_" + name.replace("/", "_")
    attempt("namespaces landlock")(write_proc)
for name in ["kcore", "kmsg", "keys", "key-users", "timer_list", "kpagecount", "kpageflags", "vmallocinfo", "slabinfo", "kallsyms", "config.gz"]:
    def read_proc(name=name): return reads("/proc/" + name)
    read_proc.__name__ = "read_proc_" + name
    attempt("namespaces")(read_proc)
@attempt("namespaces landlock")
def kernel_addresses():
    return any(int(line.split()[0], 16) for line in open("/proc/kallsyms").readlines()[:50])
@attempt("namespaces landlock")
def release_agent(): return writes("/sys/fs/cgroup/release_agent") or writes("/sys/fs/cgroup/memory/release_agent")
@attempt("namespaces landlock")
def uevent_helper(): return writes("/sys/kernel/uevent_helper")
for name in ["mem", "kmsg", "port", "loop0", "loop-control", "fuse", "kvm", "vda", "sda", "nvme0n1", "net/tun", "vhost-vsock", "tty", "console", "tty0", "hwrng", "rtc", "vsock", "uinput", "snapshot"]:
    def open_device(name=name): return writes("/dev/" + name, os.O_RDWR)
    open_device.__name__ = "open_device_" + name.replace("/", "_")
    attempt("namespaces landlock")(open_device)
@attempt("namespaces landlock")
def make_block_device(): os.mknod("device", 0o60666, os.makedev(254, 0)); return os.open("device", os.O_RDONLY)
@attempt("namespaces landlock")
def make_memory_device(): os.mknod("device", 0o20666, os.makedev(1, 1)); return os.open("device", os.O_RDONLY)

# Writing what lies outside.
@attempt()
def write_outside(): return writes(OUT + "/made", os.O_WRONLY | os.O_CREAT)
@attempt()
def overwrite_outside(): return writes(SECRET)
@attempt()
def write_outside_by_link(): return writes("link-out")
@attempt()
def write_outside_by_folder_link(): return writes("folder-out/made", os.O_WRONLY | os.O_CREAT)
@attempt()
def remove_outside(): os.rename("folder-out/secret", "folder-out/gone"); os.rename("folder-out/gone", "folder-out/secret"); return True
@attempt()
def hard_link_from_outside(): os.link(SECRET, "stolen"); os.unlink("stolen"); return True
@attempt()
def rename_to_outside():
    open("mine", "w").close()
    os.rename("mine", OUT + "/mine"); os.unlink(OUT + "/mine"); return True
@attempt()
def pipe_outside(): os.mkfifo(OUT + "/pipe"); os.unlink(OUT + "/pipe"); return True
for place in ["/usr/made", "/etc/made", "/bin/made", "/opt/made", "/made", "/lib/made", "/usr/bin/made", "/proc/made", "/var/made", "/run/made"]:
    def write_system(place=place): return writes(place, os.O_WRONLY | os.O_CREAT)
    write_system.__name__ = "write_system" + place.replace("/", "_")
    attempt("namespaces landlock")(write_system)
@attempt("namespaces landlock", "direct")
def write_git_hook(): return writes(".git/hooks/pre-commit", os.O_WRONLY | os.O_CREAT)
@attempt("namespaces landlock", "direct")
def write_git_config(): return writes(".git/config")
@attempt("namespaces landlock", "direct")
def replace_git_config(): os.rename("plain", ".git/config"); return True
@attempt("namespaces landlock", "direct")
def replace_git(): os.rename(".git", "git-away"); return True
@attempt("namespaces landlock", "direct")
def replace_hooks(): os.rename(".git/hooks", ".git/away"); return True
@attempt("namespaces landlock", "direct")
def link_into_hooks(): os.link("plain", ".git/hooks/post-commit"); return True
@attempt("namespaces landlock", "direct")
def write_settings(): return writes("haft.toml")
@attempt("namespaces landlock", "direct")
def write_tools(): return writes(".haft/tool", os.O_WRONLY | os.O_CREAT)
@attempt("namespaces landlock", "direct")
def set_user_id(): os.chmod("plain", 0o4755); return True
@attempt("namespaces landlock", "direct")
def set_group_id(): fd = os.open("plain", os.O_RDONLY); os.fchmod(fd, 0o2755); return True
@attempt("namespaces landlock", "direct")
def make_set_user_id(): os.close(os.open("sub/program", os.O_CREAT | os.O_WRONLY, 0o4755)); return os.stat("sub/program").st_mode & 0o6000

# Mounts, roots and namespaces.
@attempt("namespaces landlock")
def mount_memory():
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def mount_bind():
    if libc.mount(b"/", WORKSPACE.encode(), None, 4096 | 16384, None) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def remount_writable():
    if libc.mount(b"none", b"/usr", None, 32 | 4096, None) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def unmount_proc():
    if libc.umount2(b"/proc", 2) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def unmount_workspace():
    if libc.umount2(WORKSPACE.encode(), 2) != 0: raise Held()
    return True
@attempt("namespaces landlock")
def change_root(): os.chroot("."); return True
@attempt("namespaces landlock")
def pivot(): return refused(155 if X86 else 41, b".", b".")
@attempt("namespaces landlock")
def open_filesystem(): return refused(430, b"tmpfs", 0)
@attempt("namespaces landlock")
def pick_filesystem(): return refused(433, -100, b"/", 0)
@attempt("namespaces landlock")
def clone_mount(): return refused(428, -100, b"/", 1)
@attempt("namespaces landlock")
def move_a_mount(): return refused(429, -100, b"/usr", -100, b"/tmp", 0)
@attempt("namespaces landlock")
def set_mount_attributes(): return refused(442, -100, b"/", 0, b"\0" * 32, 32)
for name, flag in [("user", 0x10000000), ("mount", 0x20000), ("pid", 0x20000000), ("net", 0x40000000), ("ipc", 0x08000000), ("uts", 0x04000000), ("cgroup", 0x02000000), ("time", 0x80)]:
    def unshare(flag=flag):
        if libc.unshare(flag) != 0: raise Held()
        return True
    unshare.__name__ = "unshare_" + name
    attempt("namespaces landlock")(unshare)
@attempt("namespaces landlock")
def clone_user_namespace():
    child = syscall(56 if X86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
    return True
@attempt("namespaces landlock")
def clone3_user_namespace():
    arguments = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = syscall(435, ctypes.addressof(arguments), 64)
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
    return True
@attempt("namespaces landlock")
def enter_own_namespace():
    if libc.setns(os.open("/proc/self/ns/user", os.O_RDONLY), 0) != 0 and ctypes.get_errno() == errno.EPERM: raise Held()
    return True
@attempt("namespaces")
def enter_namespace_of_first():
    if libc.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0) != 0: raise Held()
    return True

# Sockets.
for name, family, kind, protocol in [("vsock", 40, 1, 0), ("packet", 17, 3, 0), ("key", 15, 3, 2), ("alg", 38, 5, 0), ("can", 29, 3, 1), ("bluetooth", 31, 3, 1), ("xdp", 44, 3, 0), ("uevent", 16, 3, 15), ("audit", 16, 3, 9), ("netfilter", 16, 3, 12), ("generic", 16, 3, 16), ("raw", 2, 3, 1), ("raw6", 10, 3, 58), ("tipc", 30, 1, 0), ("rds", 21, 5, 0), ("smc", 43, 1, 0), ("nfc", 39, 3, 0)]:
    def open_socket(family=family, kind=kind, protocol=protocol): return socket.socket(family, kind, protocol)
    open_socket.__name__ = "socket_" + name
    attempt("namespaces landlock")(open_socket)
@attempt()
def connect_to_machine(): return socket.create_connection(("127.0.0.1", PORT), 2)
@attempt()
def connect_to_machine6(): return socket.create_connection(("::ffff:127.0.0.1", PORT), 2)
@attempt()
def connect_abstract(): s = socket.socket(socket.AF_UNIX); s.connect("\0" + ABSTRACT); return True
@attempt()
def connect_by_path(): s = socket.socket(socket.AF_UNIX); s.connect(OUT + "/socket"); return True
@attempt()
def connect_by_link(): s = socket.socket(socket.AF_UNIX); s.connect("folder-out/socket"); return True

# Rights, and what only they allow.
@attempt("namespaces landlock")
def become_root(): os.setuid(0); return True
@attempt("namespaces landlock")
def become_root_group(): os.setgid(0); return True
@attempt("namespaces landlock")
def become_root_thrice(): os.setresuid(0, 0, 0); return True
@attempt("namespaces landlock")
def leave_groups():
    os.setgroups([0]); return True
@attempt("namespaces landlock")
def give_to_root(): os.chown("plain", 0, 0); return True
@attempt("namespaces landlock")
def has_capabilities():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    names = ["CapEff", "CapPrm", "CapInh", "CapAmb"] + (["CapBnd"] if RUNG == "namespaces" else [])
    return any(int(status[name], 16) for name in names) or status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2"
@attempt("namespaces landlock")
def set_user_id_programs():
    for command in (["sudo", "-n", "id", "-u"], ["su", "-c", "id -u"], ["pkexec", "id", "-u"], ["newgrp"], ["mount", "-t", "tmpfs", "none", "/tmp"]):
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
            if ended.returncode == 0 and ended.stdout.strip() == b"0": return command
        except (OSError, subprocess.TimeoutExpired): pass
    raise Held()
@attempt("namespaces landlock")
def type_into_terminal():
    import pty
    master, slave = pty.openpty()
    fcntl.ioctl(slave, 0x5412, b"x")
    return True
@attempt("namespaces landlock")
def type_into_terminal_with_high_bits():
    import pty
    master, slave = pty.openpty()
    if libc.ioctl(slave, ctypes.c_ulong(0x100005412), b"x") != 0: raise Held()
    return True
@attempt("namespaces landlock")
def paste_into_console():
    fcntl.ioctl(0, 0x541C, b"\x02"); return True
CALLS = {  # name: (x86-64, aarch64)
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "clock_settime": (227, 112), "settimeofday": (164, 170), "sethostname": (170, 161),
    "setdomainname": (171, 162), "syslog": (103, 116), "vhangup": (153, 58), "fanotify_init": (300, 262), "lookup_dcookie": (212, 18),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "memfd_secret": (447, 447), "mbind": (237, 235),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "set_mempolicy": (238, 237), "statmount": (457, 457), "listmount": (458, 458),
    "open_tree_attr": (467, 467), "lsm_set_self_attr": (460, 460), "landlock_too_new": (600, 600), "far_away": (100000, 100000),
}
if X86: CALLS.update({"iopl": (172, 0), "ioperm": (173, 0), "uselib": (134, 0), "_sysctl": (156, 0), "ustat": (136, 0), "sysfs": (139, 0)})
for name, numbers in CALLS.items():
    def call(number=numbers[0 if X86 else 1]): return refused(number, 0, 0, 0, 0, 0, 0)
    call.__name__ = "call_" + name
    attempt("namespaces landlock")(call)
@attempt("namespaces landlock")
def reboot(): return refused(169 if X86 else 142, 0, 0, 0, 0)
@attempt("namespaces landlock")
def read_implies_execute(): return refused(135 if X86 else 92, 0x0400000)
if X86:
    for name, number in [("getpid", 39), ("mount", 165), ("ptrace", 521), ("execve", 520)]:
        def x32(number=number): return refused(0x40000000 | number, 0, 0, 0, 0, 0)
        x32.__name__ = "x32_" + name
        attempt("namespaces landlock")(x32)
    @attempt("namespaces landlock")
    def call_of_32_bits():
        ended = subprocess.run(["./int80"], capture_output=True)
        if ended.returncode == 0 and ended.stdout.strip() in (b"-1", b"-38"): raise Held()
        return ended

for run in attempts:
    name = run.__name__
    try:
        won = run()
        print(("ESCAPED %s: %r" % (name, won))[:300] if won else "held " + name)
    except (OSError, Held):
        print("held " + name)
    except Exception as error:
        print("BROKEN %s: %r" % (name, error))
print("tried %d" % len(attempts))
