//! How many files this process may have open, and so how many connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::settings::Settings;

/// Raises the limit as far as the system lets a process, and says how many connections there is room for.
pub(crate) fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // A limit that cannot be raised holds as it is.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
    room_in(getrlimit(Resource::Nofile).current)
}

/// How many connections there is room for once the limit is raised.
pub(crate) fn room() -> usize {
    room_in(getrlimit(Resource::Nofile).maximum)
}

/// Connections take three quarters at the most. The rest is for the database, folders, and what calls start.
fn room_in(limit: Option<u64>) -> usize {
    limit.and_then(|files| usize::try_from(files / 4 * 3).ok()).unwrap_or(usize::MAX)
}

/// What is wrong where there is room for fewer connections than the settings allow, and what to do about it.
pub(crate) fn too_few(settings: &Settings, room: usize) -> Option<(String, &'static str)> {
    let wanted = settings.serve.limits.connections;
    let found =
        format!("the limit of open files leaves room for {room} connections, and serve.connections is {wanted}");
    (room < wanted).then_some((found, "raise it (`ulimit -Hn`, `LimitNOFILE=` in systemd), or lower serve.connections"))
}
