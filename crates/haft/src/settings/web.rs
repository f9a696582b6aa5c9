//! What of the web may be reached, and who searches it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use haft_sandbox::web::{AllowedHost, FetchLimits, PORTS, Url, WebRules};
use haft_tools::{FindSecret, ListedSite, Provider, SearchAccess, Secret, WebAccess};

use super::{
    Settings,
    values::{duration, texts},
};

/// What a name of a secret begins with.
pub(super) const SECRET: &str = "secret:";
/// No key is longer.
const LONGEST_KEY: u64 = 8 << 10;

/// The settings of the web tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSettings {
    /// What is read from unasked.
    pub allowlist: Vec<ListedSite>,
    /// What may be reached although it is not public.
    pub allow: Vec<AllowedHost>,
    /// The ports that may be reached.
    pub ports: Vec<u16>,
    /// How long a host may take to be connected with.
    pub connect: Duration,
    /// How long a host may be silent.
    pub silence: Duration,
    /// How long a fetch may take when its call does not say.
    pub timeout: Duration,
    /// Who searches the web.
    pub provider: Option<Provider>,
    /// Where they are; empty for where they usually are.
    pub search_url: String,
    /// The name of the secret that they know this user by; empty for none.
    pub search_key: String,
}

impl Default for WebSettings {
    fn default() -> Self {
        let FetchLimits { connect, silence } = FetchLimits::default();
        Self {
            allowlist: Vec::new(),
            allow: Vec::new(),
            ports: PORTS.to_vec(),
            connect,
            silence,
            timeout: Duration::from_secs(30),
            provider: None,
            search_url: String::new(),
            search_key: String::new(),
        }
    }
}

impl WebSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "web.allowlist" => self.allowlist = entries(value)?,
            "web.allow" => self.allow = entries(value)?,
            "web.ports" => self.ports = ports(value)?,
            "web.connect" => self.connect = duration(value)?,
            "web.silence" => self.silence = duration(value)?,
            "web.timeout" => self.timeout = duration(value)?,
            "web.search.provider" => self.provider = provider(value)?,
            "web.search.url" => self.search_url = checked_url(value)?,
            "web.search.key" => self.search_key = secret_name(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Which addresses may be dialled.
    pub(crate) fn rules(&self) -> WebRules {
        WebRules { ports: self.ports.clone(), allowed: self.allow.clone(), ..WebRules::default() }
    }

    /// The same for the tools, with the key in the place of its name.
    pub(crate) fn access(&self, data: &Path, variables: &BTreeMap<String, String>) -> WebAccess {
        let search =
            self.provider.map(|provider| self.search(provider, data, variables).map_err(|err| format!("{err:#}")));
        WebAccess {
            rules: self.rules(),
            limits: FetchLimits { connect: self.connect, silence: self.silence },
            allowlist: self.allowlist.clone(),
            timeout: self.timeout,
            search,
            ..WebAccess::default()
        }
    }

    fn search(&self, provider: Provider, data: &Path, variables: &BTreeMap<String, String>) -> Result<SearchAccess> {
        let word = provider.word();
        let url = Some(self.search_url.as_str()).filter(|url| !url.is_empty()).or(provider.usual_url());
        let url = url.with_context(|| {
            format!("`web.search.provider` is `{word}`, and nobody said where that is; add `web.search.url = \"http://127.0.0.1:8888\"` to your haft.toml")
        })?;
        let key = match self.search_key.as_str() {
            "" if provider.needs_key() => {
                bail!(
                    "{word} wants a key; add `web.search.key = \"secret:NAME\"` to your haft.toml, and put the key into the variable NAME or the file {}",
                    secret_file(data, "NAME")
                )
            }
            "" => None,
            name => Some(secret(name, data, variables)?),
        };
        Ok(SearchAccess { provider, url: Url::parse(url)?, key })
    }
}

fn entries<T>(text: &str) -> Result<Vec<T>>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    // A variable may name a single one as it is.
    let all = if text.starts_with('[') && !text.starts_with("[:") { texts(text)? } else { vec![text.to_owned()] };
    Ok(all.iter().map(|entry| entry.parse()).collect::<Result<_, _>>()?)
}

fn ports(text: &str) -> Result<Vec<u16>> {
    let array: toml::Value = text.parse().context("it is not an array of ports, such as [80, 443]")?;
    let ports: Vec<u16> = array.try_into().context("it is not an array of ports, such as [80, 443]")?;
    if ports.is_empty() || ports.contains(&0) {
        bail!("name at least one port, and none that is 0");
    }
    Ok(ports)
}

fn provider(text: &str) -> Result<Option<Provider>> {
    if text == "none" {
        return Ok(None);
    }
    let found = Provider::ALL.iter().find(|provider| provider.word() == text);
    Ok(Some(*found.with_context(|| format!("`{text}` is no provider: exa, brave, searxng or none"))?))
}

pub(super) fn checked_url(text: &str) -> Result<String> {
    let usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !text.is_empty() && !Url::parse(text).is_ok_and(|url| usable(&url)) {
        bail!("`{text}` is no URL; write it like `http://127.0.0.1:8888`");
    }
    Ok(text.to_owned())
}

/// Settings are shown and written down, so they hold the name of a secret and never the secret.
pub(super) fn secret_name(text: &str) -> Result<String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let plain = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let name = text.strip_prefix(SECRET).filter(plain);
    Ok(name
        .context("write `secret:NAME` in the place of the key; NAME has only letters, digits, `_` and `-`")?
        .to_owned())
}

fn secret_file(data: &Path, name: &str) -> String {
    data.join("secrets").join(name).display().to_string()
}

/// The secret of a name: the file of haft's own, which nobody else may read, or else the variable.
fn secret(name: &str, data: &Path, variables: &BTreeMap<String, String>) -> Result<Secret> {
    found_secret(name, data, variables).map(Secret::new)
}

impl Settings {
    /// The user's secrets by their names, for what is started with them.
    pub(crate) fn secrets(&self) -> FindSecret {
        let (data, variables) = (self.data.clone(), self.variables.clone());
        Arc::new(move |name| found_secret(name, &data, &variables).map_err(|err| format!("{err:#}")))
    }
}

/// The same as plain text, for what is started with it.
pub(super) fn found_secret(name: &str, data: &Path, variables: &BTreeMap<String, String>) -> Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let file = secret_file(data, name);
    let found = match fs::metadata(&file) {
        Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
            bail!("the secret `{name}` can be read by others; run: chmod 600 {file}")
        }
        Ok(meta) if meta.len() > LONGEST_KEY => bail!("{file} is too long for a key"),
        Ok(_) => Some(fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?),
        Err(_) => variables.get(name).cloned(),
    };
    let key = found.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    key.with_context(|| {
        format!("there is no secret `{name}`; set it with `haft secret set {name}`, or in the variable {name}")
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

    use super::WebSettings;

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let mut settings = WebSettings::default();
        for (key, value, expected) in [
            ("web.allowlist", "[\"https://x.org\"]", "is no host"),
            ("web.allow", "[\"10.0.0.0/33\"]", "neither a host nor a range"),
            ("web.allow", "[1]", "array of text"),
            ("web.ports", "[0]", "none that is 0"),
            ("web.ports", "80", "array of ports"),
            ("web.ports", "[70000]", "array of ports"),
            ("web.search.provider", "google", "exa, brave, searxng or none"),
            ("web.search.url", "127.0.0.1:8888", "no URL"),
            ("web.search.url", "file:///etc", "no URL"),
            ("web.search.key", "sk-abcdef", "secret:NAME"),
            ("web.search.key", "secret:../x", "secret:NAME"),
        ] {
            let said = format!("{:#}", settings.take(key, value).unwrap_err());
            assert!(said.contains(expected) && !said.contains("sk-abcdef"), "{key} = {value}: {said}");
        }
        assert_eq!(settings, WebSettings::default());
        settings.take("web.allow", "[::1]:8080").unwrap();
        settings.take("web.allowlist", "docs.rs").unwrap();
        assert_eq!((settings.allow[0].to_string(), settings.allowlist.len()), ("[::1]:8080".to_owned(), 1));
    }

    #[test]
    fn a_key_is_found_in_its_file_or_in_the_environment() {
        let data = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("BRAVE".to_owned(), "of-the-variable".to_owned())]);
        let mut settings = WebSettings::default();
        let search = |settings: &WebSettings| settings.access(data.path(), &variables).search.unwrap();
        settings.take("web.search.provider", "brave").unwrap();
        assert!(search(&settings).unwrap_err().contains("wants a key"));
        settings.take("web.search.key", "secret:EXA").unwrap();
        assert!(search(&settings).unwrap_err().contains("there is no secret `EXA`"));
        settings.take("web.search.key", "secret:BRAVE").unwrap();
        assert_eq!(search(&settings).unwrap().key, Some(haft_tools::Secret::new("of-the-variable")));
        let file = data.path().join("secrets/BRAVE");
        fs::create_dir(data.path().join("secrets")).unwrap();
        fs::write(&file, "of-the-file\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(search(&settings).unwrap_err().contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(search(&settings).unwrap().key, Some(haft_tools::Secret::new("of-the-file")));
        assert!(!format!("{:?}", search(&settings)).contains("of-the-file"));
        settings.take("web.search.provider", "searxng").unwrap();
        assert!(search(&settings).unwrap_err().contains("web.search.url"));
    }
}
