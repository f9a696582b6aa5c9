//! The mail server by which people hear of questions, and when they do.

use std::{collections::BTreeMap, net::IpAddr, path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use haft_platform::{MailServer, MailTls, Mailer, NoticeTimes};

use super::{
    Settings,
    values::duration,
    web::{found_secret, secret_name},
};

/// The settings of mail and of notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSettings {
    /// The server that takes mail; empty for none.
    pub host: String,
    /// Its port; 0 for the one that goes with `tls`.
    pub port: u16,
    /// How the connection is secured.
    pub tls: MailTls,
    /// The name that it knows haft by; empty for none.
    pub user: String,
    /// The name of the secret that is the password.
    pub password: String,
    /// Whom mail comes from.
    pub from: String,
    /// How long one mail may take.
    pub timeout: Duration,
    /// When people are told.
    pub times: NoticeTimes,
}

impl Default for MailSettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            host: String::new(),
            port: 0,
            tls: MailTls::Starttls,
            user: String::new(),
            password: String::new(),
            from: String::new(),
            timeout: seconds(20),
            times: NoticeTimes { grace: seconds(10), every: seconds(60), retry: seconds(30) },
        }
    }
}

impl MailSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "mail.host" => self.host = value.trim().to_owned(),
            "mail.port" => self.port = value.parse().context("a port is a number up to 65535")?,
            "mail.tls" => self.tls = tls(value)?,
            "mail.user" => self.user = value.to_owned(),
            "mail.password" => self.password = secret_name(value)?,
            "mail.from" => self.from = value.to_owned(),
            "mail.timeout" => self.timeout = duration(value)?,
            "notify.grace" => self.times.grace = duration(value)?,
            "notify.every" => self.times.every = duration(value)?,
            "notify.retry" => self.times.retry = duration(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The port that is used.
    pub(crate) fn port(&self) -> u16 {
        match (self.port, self.tls) {
            (0, MailTls::Starttls) => 587,
            (0, MailTls::Tls) => 465,
            (0, MailTls::None) => 25,
            (port, _) => port,
        }
    }

    fn server(&self, data: &Path, variables: &BTreeMap<String, String>) -> Result<MailServer> {
        if self.from.is_empty() {
            bail!("`mail.host` is set, and nobody said whom mail comes from; add `mail.from = \"haft@example.org\"`");
        }
        let from = self.from.parse().ok().with_context(|| format!("`mail.from`: `{}` is no address", self.from))?;
        let login = match (self.user.as_str(), self.password.as_str()) {
            ("", "") => None,
            ("", _) | (_, "") => bail!("`mail.user` and `mail.password` go together"),
            (user, name) => Some((user.to_owned(), found_secret(name, data, variables).context("`mail.password`")?)),
        };
        let is_near = self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
        if login.is_some() && self.tls == MailTls::None && !is_near {
            bail!("`mail.tls = \"none\"` would send the password for anybody to read; use `starttls` or `tls`");
        }
        let (host, timeout) = (self.host.clone(), self.timeout);
        Ok(MailServer { host, port: self.port(), tls: self.tls, login, from, timeout })
    }
}

impl Settings {
    /// What sends mail; `None` where no server is set.
    pub(crate) fn mailer(&self) -> Result<Option<Mailer>> {
        if self.mail.host.is_empty() {
            return Ok(None);
        }
        Ok(Some(Mailer::new(self.mail.server(&self.data, &self.variables)?)))
    }
}

fn tls(text: &str) -> Result<MailTls> {
    match text {
        "starttls" => Ok(MailTls::Starttls),
        "tls" => Ok(MailTls::Tls),
        "none" => Ok(MailTls::None),
        _ => bail!("`{text}` does not say how the connection is secured: starttls, tls or none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_with_a_reason() {
        let with = |pairs: &[(&str, &str)]| {
            let mut settings = MailSettings { host: "mail.example.org".to_owned(), ..MailSettings::default() };
            pairs.iter().for_each(|(key, value)| assert!(settings.take(key, value).unwrap(), "{key}"));
            settings.server(Path::new("/nowhere"), &BTreeMap::from([("PW".to_owned(), "s3cret".to_owned())]))
        };
        let from = ("mail.from", "haft <haft@example.org>");
        assert_eq!(with(&[from]).unwrap().port, 587);
        assert_eq!(with(&[from, ("mail.tls", "tls")]).unwrap().port, 465);
        for (pairs, why) in [
            (vec![], "mail.from"),
            (vec![("mail.from", "nobody")], "no address"),
            (vec![from, ("mail.user", "haft")], "go together"),
            (vec![from, ("mail.user", "haft"), ("mail.password", "secret:NONE")], "no secret `NONE`"),
            (vec![from, ("mail.user", "h"), ("mail.password", "secret:PW"), ("mail.tls", "none")], "anybody to read"),
        ] {
            let said = format!("{:#}", with(&pairs).err().unwrap());
            assert!(said.contains(why) && !said.contains("s3cret"), "{said}");
        }
        assert!(MailSettings::default().take("mail.password", "hunter22").is_err());
    }
}
