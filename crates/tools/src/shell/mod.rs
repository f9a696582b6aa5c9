//! Commands and code.

mod input;
mod ring;
mod run_code;
mod shell_background;
mod shell_exec;
mod shell_kill;
mod shell_list;
mod shell_output;
mod shell_result;
mod tasks;

pub(crate) use run_code::RunCode;
pub(crate) use shell_background::ShellBackground;
pub(crate) use shell_exec::ShellExec;
pub(crate) use shell_kill::ShellKill;
pub(crate) use shell_list::ShellList;
pub(crate) use shell_output::ShellOutput;
pub(crate) use tasks::Tasks;
