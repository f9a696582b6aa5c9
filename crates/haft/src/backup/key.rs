//! Which master key there is, without making one.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use haft_platform::MasterKey;
use sha2::{Digest, Sha256};

use crate::{commands::serve::SECRET_KEY, settings::Settings};

/// A master key that is there.
pub(crate) enum GivenKey {
    /// The text of the variable.
    Variable(String),
    /// The bytes of the file in the data folder.
    File(Vec<u8>),
}

impl GivenKey {
    /// The one that this haft uses; `None` before one was made.
    pub(crate) fn of(settings: &Settings) -> Result<Option<Self>> {
        if let Some(text) = settings.variables.get(SECRET_KEY).map(|given| given.trim()).filter(|given| !given.is_empty()) {
            return Ok(Some(Self::Variable(text.to_owned())));
        }
        let path = file(settings);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(Self::File(bytes))),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Its bytes, as the file has them.
    pub(crate) fn bytes(&self) -> Result<[u8; 32]> {
        match self {
            Self::Variable(text) => Ok(Sha256::digest(text.as_bytes()).into()),
            Self::File(bytes) => bytes.as_slice().try_into().context("the file secret.key is damaged"),
        }
    }

    /// The number that tells it from others.
    pub(crate) fn number(&self) -> Result<i64> {
        Ok(MasterKey::new(&self.bytes()?).number())
    }
}

/// Where a key lies that no variable gives.
pub(crate) fn file(settings: &Settings) -> PathBuf {
    settings.data.join("secret.key")
}
