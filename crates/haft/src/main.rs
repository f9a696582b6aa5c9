//! `haft`: answers a shell that completes, or reads the command line and ends with the right exit code.

use std::process::ExitCode;

use haft::{cli, complete};

fn main() -> ExitCode {
    // Before any thread: the process that builds a fence must have but one.
    haft_sandbox::fence::become_helper_if_asked();
    if complete::answered(std::env::args_os().collect()) {
        return ExitCode::SUCCESS;
    }
    // One thread: a call that goes from task to task would wake another at every step, which takes longer than most steps
    // do. What blocks for long is done aside, or hands this thread's tasks to another.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(err) => {
            anstream::eprintln!("haft: cannot start: {err}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(cli::run(std::env::args_os()));
    // A reader that waits for the terminal must not hold the process.
    runtime.shutdown_background();
    code.into()
}
