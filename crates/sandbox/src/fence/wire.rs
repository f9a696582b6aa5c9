//! What goes over the socket between whoever asks for a fenced process and the process that builds its fence.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file_time::FileTime;
use super::job::{Bound, FenceJob, Mask, MaskContent};

/// More than any job or report has; a longer frame is not from us.
const LONGEST: u32 = 1 << 30;

/// The most room that is made for a frame before it is there.
const LARGEST_AT_ONCE: u32 = 64 << 10;

/// What the process that builds the fence is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperOrder {
    /// To run a command.
    Run(Box<FenceRequest>),
    /// To make a network in which the commands of this workspace reach one another, hand it over, and end.
    MakeLoopback { workspace: PathBuf },
}

/// A command and its fence. The network that it shares follows, if it does, then what it reads from its standard input as
/// a frame of its own, then what is shown in the place of secrets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FenceRequest {
    /// What to run, without its standard input.
    pub(super) job: FenceJob,
    /// When it was asked for.
    pub(super) asked: FileTime,
    /// Where its standard input comes from.
    pub(super) input: Input,
    /// Whom it reaches on the loopback interface.
    pub(super) loopback: LoopbackReach,
}

/// Whom a command that does not reach the network reaches on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LoopbackReach {
    /// Only itself.
    Itself,
    /// The other commands in the network that is handed over.
    Workspace,
}

/// Where the standard input of a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Input {
    /// The frame that follows.
    Given,
    /// Whoever hears its output: both are the two directions of one socket.
    Conversation,
}

/// What the process that builds the fence says about it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FenceReport {
    /// The fence stands, and the command is about to run.
    Began(FileTime),
    /// The fence could not be built, and nothing was run.
    Failed(StepFailure),
    /// There is no such program inside.
    NotFound,
    /// The program is there, but the system does not run it, and why.
    NotRun(String),
    /// The command has ended with this status of `wait(2)`, and whatever it left behind is being killed.
    Ended { status: i32, bound: Option<Bound> },
}

/// A step of building the fence that failed, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepFailure {
    pub(super) step: String,
    pub(super) why: String,
}

impl StepFailure {
    /// A step that failed.
    pub(super) fn new(step: String, error: &io::Error) -> StepFailure {
        StepFailure { step, why: error.to_string() }
    }

    /// A step that was not even tried.
    pub(super) fn refused(step: &str, why: &str) -> StepFailure {
        StepFailure { step: step.to_owned(), why: why.to_owned() }
    }
}

/// Says at which step something failed.
pub(super) trait AtStep<T> {
    /// Names the step.
    fn at(self, step: impl FnOnce() -> String) -> Result<T, StepFailure>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: impl FnOnce() -> String) -> Result<T, StepFailure> {
        self.map_err(|error| StepFailure::new(step(), &error.into()))
    }
}

/// Sends a value as one frame.
pub(super) fn send(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    send_bytes(&mut to, &serde_json::to_vec(value)?)
}

/// Sends bytes as one frame: their number, then themselves.
pub(super) fn send_bytes(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "more than 1 GiB to hand over"))?;
    let mut frame = Vec::with_capacity(4 + bytes.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    to.write_all(&frame)
}

/// Sends what is shown in the place of secrets, each as one frame.
pub(super) fn send_masks(mut to: impl Write, masks: &[Mask]) -> io::Result<()> {
    masks.iter().try_for_each(|mask| match &mask.content {
        MaskContent::Head { bytes, .. } => send_bytes(&mut to, bytes),
        MaskContent::Nothing => Ok(()),
    })
}

/// Receives it.
pub(super) fn receive_masks(mut from: impl Read, masks: &mut [Mask]) -> io::Result<()> {
    for mask in masks {
        match &mut mask.content {
            MaskContent::Head { bytes, .. } => *bytes = receive_bytes(&mut from)?,
            MaskContent::Nothing => {}
        }
    }
    Ok(())
}

/// Receives a value.
pub(super) fn receive<T: DeserializeOwned>(from: impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&receive_bytes(from)?)?)
}

/// Receives the bytes of one frame.
pub(super) fn receive_bytes(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that is longer than any of ours"));
    }
    // Whoever is on the other side says how long it is, and is believed only so far.
    let mut bytes = Vec::with_capacity(length.min(LARGEST_AT_ONCE) as usize);
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
