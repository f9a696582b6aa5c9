//! The key that everything secret is derived from: where it is found, and whether the database knows it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use haft_platform::MasterKey;
use haft_runtime::ToolError;
use haft_store::Store;
use sha2::{Digest, Sha256};

use crate::{
    commands::{
        mcp::{kept_secret, write_aside},
        mistake,
        serve::make_private,
    },
    house,
    settings::Settings,
};

/// The variable with the master key, and with the one that takes its place.
pub(crate) const SECRET_KEY: &str = "HAFT_SECRET_KEY";
pub(crate) const NEW_SECRET_KEY: &str = "HAFT_SECRET_KEY_NEW";
/// The shortest text that is a key.
const SHORTEST: usize = 32;

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
        if let Some(text) = variable(settings, SECRET_KEY)? {
            return Ok(Some(Self::Variable(text)));
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

    /// The key itself.
    pub(crate) fn key(&self) -> Result<MasterKey> {
        Ok(MasterKey::new(&self.bytes()?))
    }

    /// The number that tells it from others.
    pub(crate) fn number(&self) -> Result<i64> {
        Ok(self.key()?.number())
    }
}

/// A key that a variable gives, if it is long enough for one.
pub(crate) fn variable(settings: &Settings, name: &str) -> Result<Option<String>> {
    let given = settings.variables.get(name).map(|given| given.trim()).filter(|given| !given.is_empty());
    match given {
        Some(given) if given.len() < SHORTEST => {
            Err(mistake(format!("{name} must have at least {SHORTEST} characters")))
        }
        given => Ok(given.map(str::to_owned)),
    }
}

/// The master key: that of the variable, or one that is made once and kept.
pub(crate) fn master_key(settings: &Settings) -> Result<MasterKey> {
    match GivenKey::of(settings)? {
        Some(given @ GivenKey::Variable(_)) => given.key(),
        Some(_) | None if settings.store_url.is_some() => {
            let why = "several nodes may share the database, and each needs the same key";
            Err(mistake(format!("set {SECRET_KEY} to at least {SHORTEST} random characters: {why}")))
        }
        Some(GivenKey::File(_)) | None => {
            make_private(&settings.data)?;
            Ok(MasterKey::new(&kept_secret(&file(settings))?))
        }
    }
}

/// The same, once it is known to be that of the database. A new key whose file was not put in its place before haft was
/// killed is put there now.
pub(crate) async fn checked(settings: &Settings, store: &Store) -> Result<MasterKey> {
    let (house, mut key) = (house::whole(), master_key(settings)?);
    let noted = store.master_key_number(&house).await.map_err(ToolError::from)?;
    let new = new_file(settings);
    if noted.is_some_and(|noted| noted != key.number())
        && let Ok(bytes) = fs::read(&new)
        && noted == Some(GivenKey::File(bytes).number()?)
        && variable(settings, SECRET_KEY)?.is_none()
    {
        use_new_file(settings)?;
        key = master_key(settings)?;
    }
    store.check_master_key(&house, key.number()).await.map_err(ToolError::from)?;
    Ok(key)
}

/// Where a new key lies until it is in use.
fn new_file(settings: &Settings) -> PathBuf {
    settings.data.join("secret.key.new")
}

/// Makes a new key and keeps it aside.
pub(crate) fn make_new_file(settings: &Settings) -> Result<MasterKey> {
    let (path, bytes) = (new_file(settings), crate::commands::mcp::random()?);
    let aside = write_aside(&path, &bytes)?;
    File::open(&aside)?.sync_all()?;
    fs::rename(aside, &path)?;
    sync(&settings.data)?;
    Ok(MasterKey::new(&bytes))
}

/// Puts the new key in the place of the old one.
pub(crate) fn use_new_file(settings: &Settings) -> Result<()> {
    fs::rename(new_file(settings), file(settings)).context("the new master key cannot be put in its place")?;
    sync(&settings.data)
}

fn sync(folder: &Path) -> Result<()> {
    Ok(File::open(folder)?.sync_all()?)
}

/// Where a key lies that no variable gives.
pub(crate) fn file(settings: &Settings) -> PathBuf {
    settings.data.join("secret.key")
}
