//! The folder of the workspace that lies beneath the folder of a layer that a walk is in.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::walk::{Descent, WalkStep};

/// Goes down and up as the walk over a layer does.
pub(super) struct LowerFolder {
    way: Descent,
    /// How deep the folder of the layer is whose counterpart somebody has taken away.
    lost: Option<usize>,
}

impl LowerFolder {
    pub(super) fn new() -> LowerFolder {
        LowerFolder { way: Descent::for_naming(), lost: None }
    }

    /// Goes down into the counterpart of a folder; the workspace itself is given by its handle.
    pub(super) fn enter(&mut self, root: Option<BorrowedFd<'_>>, step: &WalkStep<'_>) -> Result<(), Errno> {
        if self.lost.is_some() {
            return Ok(());
        }
        let entered = match root {
            Some(root) => self.way.enter(root, OsStr::new(".")),
            None => self.way.enter_below(step.name),
        };
        match entered {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.lost = Some(step.depth);
                Ok(())
            }
            entered => entered,
        }
    }

    /// Goes up again from a folder that lies this deep.
    pub(super) fn leave(&mut self, depth: usize) -> Result<(), Errno> {
        match self.lost {
            Some(lost) if lost == depth => {
                self.lost = None;
                Ok(())
            }
            Some(_) => Ok(()),
            None => self.way.leave(),
        }
    }

    /// The folder, unless it was taken away.
    pub(super) fn folder(&self) -> Option<BorrowedFd<'_>> {
        if self.lost.is_some() { None } else { self.way.deepest().ok() }
    }
}
