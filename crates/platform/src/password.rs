//! Passwords, as argon2id hashes.

use std::time::Duration;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use haft_runtime::{ErrorCode, ToolError};
use tokio::{sync::Semaphore, time::timeout};

/// The shortest password.
const SHORTEST: usize = 10;
/// The longest: more only costs time.
const LONGEST: usize = 1024;
/// How long to wait until it is this one's turn.
const TURN: Duration = Duration::from_secs(10);
/// The hash of a password that nobody has.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyB0aGlz$2j2G0cUMDMkGTdvWbVzo0AtRqSw1Pg5O2nfYYrW2f8Y";

/// The hash that a password is kept as. It takes a while on purpose, so that it runs beside everything else.
pub(crate) async fn hash(turns: &Semaphore, password: String) -> Result<String, ToolError> {
    if !(SHORTEST..=LONGEST).contains(&password.len()) {
        let message = format!("a password has {SHORTEST} to {LONGEST} characters");
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    }
    let _turn = turn(turns).await?;
    let hashed = tokio::task::spawn_blocking(move || {
        Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string())
    });
    let failed = || ToolError::new(ErrorCode::Internal, "the password could not be hashed");
    hashed.await.map_err(|_| failed())?.map_err(|_| failed())
}

/// Whether a password is the one that was kept. It takes as long when nobody has such a password, so that nobody learns who
/// does.
pub(crate) async fn is_right(turns: &Semaphore, kept: Option<String>, given: String) -> Result<bool, ToolError> {
    if given.len() > LONGEST {
        return Ok(false);
    }
    let _turn = turn(turns).await?;
    let checked = tokio::task::spawn_blocking(move || {
        let known = kept.is_some();
        let kept = kept.unwrap_or_else(|| NOBODYS.to_owned());
        let fits = PasswordHash::new(&kept)
            .is_ok_and(|kept| Argon2::default().verify_password(given.as_bytes(), &kept).is_ok());
        known && fits
    });
    Ok(checked.await.unwrap_or(false))
}

/// Many at once would take all memory there is.
async fn turn(turns: &Semaphore) -> Result<tokio::sync::SemaphorePermit<'_>, ToolError> {
    match timeout(TURN, turns.acquire()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => {
            let message = "too many people sign in at this moment; try again soon";
            Err(ToolError::new(ErrorCode::RateLimited, message).with("retryAfterMs", 5000))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[tokio::test]
    async fn only_the_password_is_right() {
        let turns = Semaphore::new(1);
        let kept = hash(&turns, "correct horse".to_owned()).await.unwrap();
        assert!(kept.starts_with("$argon2id$"));
        let is_right = async |kept: Option<&str>, given: &str| {
            is_right(&turns, kept.map(str::to_owned), given.to_owned()).await.unwrap()
        };
        assert!(is_right(Some(&kept), "correct horse").await);
        assert!(!is_right(Some(&kept), "correct house").await);
        assert!(!is_right(None, "correct horse").await);
        hash(&turns, "short".to_owned()).await.unwrap_err();
    }

    #[test]
    fn trying_the_password_of_nobody_takes_as_long_as_any_other() {
        let (nobodys, usual) = (PasswordHash::new(NOBODYS).unwrap(), argon2::Params::default());
        let params = argon2::Params::try_from(&nobodys).unwrap();
        assert_eq!(
            (params.m_cost(), params.t_cost(), params.p_cost()),
            (usual.m_cost(), usual.t_cost(), usual.p_cost())
        );
        assert!(nobodys.hash.is_some());
    }
}
