//! One file per stage, in the order a call meets them.

pub(crate) mod approve;
pub(crate) mod authorize;
pub(crate) mod deliver;
pub(crate) mod execute;
pub(crate) mod prepare;
pub(crate) mod record;
pub(crate) mod resolve;
pub(crate) mod validate;
