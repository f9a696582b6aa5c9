//! How people sign in at the gateway: by password, and with providers of OpenID Connect.

use anyhow::{Context, Result, bail};
use haft_platform::{OidcJoin, OidcProvider, Role};
use haft_sandbox::web::Url;

use super::{
    Settings,
    values::{switch, texts},
    web::secret_name,
};

/// What a provider is asked for where nothing else is said.
const SCOPES: [&str; 3] = ["openid", "email", "profile"];
/// What an entry of a provider has.
const FIELDS: [&str; 7] = ["issuer", "client_id", "client_secret", "label", "scopes", "private", "join"];

/// How people sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether by password.
    pub password: bool,
    /// With which providers.
    pub oidc: Vec<OidcEntry>,
}

/// A provider as it is written down: a secret is named, not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcEntry {
    name: String,
    label: String,
    issuer: Url,
    written_issuer: String,
    client_id: String,
    /// The name of the secret; empty for none.
    client_secret: String,
    scopes: Vec<String>,
    private: bool,
    join: Option<OidcJoin>,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self { password: true, oidc: Vec::new() }
    }
}

impl AuthSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "auth.password" => self.password = switch(value)?,
            "auth.oidc" => self.oidc = providers(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Settings {
    /// The providers with their secrets, and whether people sign in by password. Somebody must be able to sign in somehow.
    pub(crate) fn sign_in_methods(&self) -> Result<(bool, Vec<OidcProvider>)> {
        let AuthSettings { password, oidc } = &self.auth;
        if !password && oidc.is_empty() {
            bail!(
                "`auth.password` is off and there is no provider in `auth.oidc`: nobody could sign in; set one of them"
            );
        }
        let secrets = self.secrets();
        let provider = |entry: &OidcEntry| -> Result<OidcProvider> {
            let secret = match entry.client_secret.as_str() {
                "" => None,
                name => Some(secrets(name).map_err(anyhow::Error::msg)?),
            };
            Ok(OidcProvider {
                name: entry.name.clone(),
                label: entry.label.clone(),
                issuer: entry.issuer.clone(),
                written_issuer: entry.written_issuer.clone(),
                client_id: entry.client_id.clone(),
                client_secret: secret,
                scopes: entry.scopes.clone(),
                private: entry.private,
                join: entry.join.clone(),
            })
        };
        let named = |entry: &OidcEntry| provider(entry).with_context(|| format!("in `auth.oidc.{}`", entry.name));
        Ok((*password, oidc.iter().map(named).collect::<Result<_>>()?))
    }
}

fn providers(text: &str) -> Result<Vec<OidcEntry>> {
    let table: toml::Value = text.parse().context("it is not a table of providers")?;
    let table = table.as_table().context("it is not a table of providers")?;
    table.iter().map(|(name, entry)| one(name, entry).with_context(|| format!("`{name}`"))).collect()
}

fn one(name: &str, entry: &toml::Value) -> Result<OidcEntry> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(plain) {
        bail!("a provider's name has lower-case letters, digits and `-`: it stands in addresses");
    }
    let missing = "a provider is a table `[auth.oidc.NAME]` with `issuer` and `client_id`";
    let entry = entry.as_table().context(missing)?;
    if let Some(other) = entry.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        bail!("a provider has no `{other}`: it has {}", FIELDS.join(", "));
    }
    let text = |field: &str| match entry.get(field) {
        None => Ok(None),
        Some(value) => value
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(Some)
            .with_context(|| format!("`{field}` is not a text")),
    };
    let private = entry
        .get("private")
        .map_or(Ok(false), |value| value.as_bool().context("`private` is not a switch: true or false"))?;
    let written_issuer = text("issuer")?.context(missing)?.to_owned();
    let scopes = entry.get("scopes").map(|value| texts(&value.to_string())).transpose()?;
    let scopes = scopes.unwrap_or_else(|| SCOPES.map(str::to_owned).to_vec());
    if !scopes.iter().any(|scope| scope == "openid") {
        bail!("`scopes` has no `openid`, without which a provider tells nobody who somebody is");
    }
    Ok(OidcEntry {
        name: name.to_owned(),
        label: text("label")?.unwrap_or(name).to_owned(),
        issuer: issuer(&written_issuer, private)?,
        written_issuer,
        client_id: text("client_id")?.context(missing)?.to_owned(),
        client_secret: secret_name(text("client_secret")?.unwrap_or_default())?,
        scopes,
        private,
        join: entry.get("join").map(join).transpose()?,
    })
}

fn issuer(text: &str, private: bool) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| url.has_host() && url.query().is_none() && url.fragment().is_none());
    let url = url.with_context(|| {
        format!("`{text}` is no issuer; write it as the provider does, like https://login.example.org")
    })?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if private => Ok(url),
        _ => bail!("`{text}` is not https; a provider on your own network may be without it when `private = true`"),
    }
}

fn join(value: &toml::Value) -> Result<OidcJoin> {
    let usual = "`join` is like { tenant = \"acme\", role = \"member\", domains = [\"acme.example\"] }";
    let table = value.as_table().context(usual)?;
    if table.keys().any(|key| !["tenant", "role", "domains"].contains(&key.as_str())) {
        bail!("{usual}");
    }
    let tenant = table.get("tenant").and_then(toml::Value::as_str).context(usual)?;
    let role = table.get("role").map_or(Some("member"), toml::Value::as_str).and_then(Role::parse);
    let role = role.filter(|role| matches!(role, Role::Admin | Role::Member | Role::Viewer));
    let domains = texts(&table.get("domains").context(usual)?.to_string())?;
    let is_host = |domain: &String| domain.contains('.') && !domain.contains(['@', '*', ' ', '/']);
    if domains.is_empty() || !domains.iter().all(is_host) {
        bail!("`domains` names the hosts of mail addresses, such as [\"acme.example\"]");
    }
    Ok(OidcJoin {
        tenant: tenant.to_owned(),
        role: role.context("whoever joins by themselves is admin, member or viewer")?,
        domains: domains.iter().map(|domain| domain.to_lowercase()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_read_with_all_that_it_is_told() {
        let mut auth = AuthSettings::default();
        let text = "{ acme = { issuer = 'https://login.acme.example/', client_id = 'haft', client_secret = 'secret:ACME', \
                    join = { tenant = 'acme', domains = ['ACME.example'] } } }";
        assert!(auth.take("auth.oidc", text).unwrap());
        let acme = &auth.oidc[0];
        assert_eq!((acme.label.as_str(), acme.written_issuer.as_str()), ("acme", "https://login.acme.example/"));
        let join = acme.join.as_ref().unwrap();
        assert_eq!((join.role, &join.domains[..]), (Role::Member, &["acme.example".to_owned()][..]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let rest = "issuer = 'https://a.example', client_id = 'haft'";
        for (entry, expected) in [
            ("1".to_owned(), "with `issuer` and `client_id`"),
            ("{ issuer = 'https://a.example' }".to_owned(), "with `issuer` and `client_id`"),
            ("{ issuer = 'http://a.example', client_id = 'h' }".to_owned(), "is not https"),
            ("{ issuer = 'file:///x', client_id = 'h', private = true }".to_owned(), "no issuer"),
            ("{ issuer = 'https://a.example/?x', client_id = 'h' }".to_owned(), "no issuer"),
            (format!("{{ {rest}, client_secret = 'hunter22' }}"), "secret:NAME"),
            (format!("{{ {rest}, scopes = ['email'] }}"), "no `openid`"),
            (format!("{{ {rest}, secret = 'x' }}"), "has no `secret`"),
            (format!("{{ {rest}, private = 'yes' }}"), "not a switch"),
            (
                format!("{{ {rest}, join = {{ tenant = 'a', role = 'owner', domains = ['a.example'] }} }}"),
                "admin, member",
            ),
            (format!("{{ {rest}, join = {{ tenant = 'a', domains = ['*'] }} }}"), "hosts of mail addresses"),
        ] {
            let mut auth = AuthSettings::default();
            let said = format!("{:#}", auth.take("auth.oidc", &format!("{{ acme = {entry} }}")).unwrap_err());
            assert!(said.contains(expected) && !said.contains("hunter22"), "{entry}: {said}");
        }
        assert!(AuthSettings::default().take("auth.oidc", "{ 'A b' = {} }").is_err());
    }
}
