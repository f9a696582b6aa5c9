//! `haft`: answers a shell that completes, or reads the command line and ends with the right exit code.

use std::process::ExitCode;

use haft::{cli, complete, exit::CliExit, logging};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    // Before any thread: the process that builds a fence must have but one.
    haft_sandbox::fence::become_helper_if_asked();
    if complete::answered(std::env::args_os().collect()) {
        return ExitCode::SUCCESS;
    }
    let cli = match cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    if let Err(err) = logging::start(cli.log_format()) {
        anstream::eprintln!("error: {err:#}");
        return CliExit::Usage.into();
    }
    let mut builder = Builder::new_multi_thread();
    if !cli.serves() {
        // One command does one thing at a time; a server has a thread for each core.
        builder.worker_threads(1);
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(err) => {
            anstream::eprintln!("error: cannot start: {err}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(cli::run(cli));
    // A reader that waits for the terminal must not hold the process.
    runtime.shutdown_background();
    code.into()
}
