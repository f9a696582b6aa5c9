//! Where spans are sent to, as OpenTelemetry has them.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};

use super::{
    values::switch,
    web::{found_secret, secret_name},
};

/// The variables that everybody who sends spans knows.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// Whether and where spans are sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetrySettings {
    endpoint: Option<String>,
    headers: Option<String>,
    service: Option<String>,
    sample: Option<f64>,
    content: bool,
}

/// Where spans go, with everything that is needed to send them.
pub(crate) struct SpanCollector {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) service: String,
    pub(crate) sample: f64,
    pub(crate) content: bool,
}

impl TelemetrySettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "telemetry.endpoint" => self.endpoint = endpoint(value)?,
            "telemetry.headers" if value.is_empty() => self.headers = None,
            "telemetry.headers" => self.headers = Some(secret_name(value)?),
            "telemetry.service" => self.service = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "telemetry.sample" => self.sample = Some(share(value)?),
            "telemetry.content" => self.content = switch(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Where spans go; `None` where nobody wants them.
    pub(crate) fn collector(&self, data: &Path, variables: &BTreeMap<String, String>) -> Result<Option<SpanCollector>> {
        let given = |name: &str| variables.get(name).cloned().filter(|value| !value.is_empty());
        let standard = given(ENDPOINT).map(|url| endpoint(&url)).transpose().context(ENDPOINT)?.flatten();
        let Some(base) = self.endpoint.clone().or(standard) else { return Ok(None) };
        let written = match &self.headers {
            Some(secret) => Some(found_secret(secret, data, variables)?),
            None => given(HEADERS),
        };
        let headers = written.as_deref().map(headers).transpose().context("the headers for the collector")?;
        Ok(Some(SpanCollector {
            url: format!("{base}/v1/traces"),
            headers: headers.unwrap_or_default(),
            service: self.service.clone().or_else(|| given(SERVICE)).unwrap_or_else(|| "haft".to_owned()),
            sample: self.sample.unwrap_or(1.0),
            content: self.content,
        }))
    }
}

fn endpoint(text: &str) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
        bail!("`{text}` is no address of a collector; write it like http://127.0.0.1:4318");
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

fn share(text: &str) -> Result<f64> {
    let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.with_context(|| format!("`{text}` is no share of calls; write a number from 0 to 1"))
}

/// `name=value`, several with commas between. What is wrong is said without the value.
fn headers(text: &str) -> Result<Vec<(String, String)>> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').context("write them like `name=value,name=value`")?;
        Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> TelemetrySettings {
        let mut settings = TelemetrySettings::default();
        for (key, value) in pairs {
            assert!(settings.take(key, value).unwrap());
        }
        settings
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_where() {
        let nothing = BTreeMap::new();
        assert!(set(&[]).collector(Path::new("/"), &nothing).unwrap().is_none());
        let standard = [(ENDPOINT, "http://127.0.0.1:9/"), (SERVICE, "tools"), (HEADERS, "Api-Key=abc, x=1=2")];
        let standard = standard.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let found = set(&[]).collector(Path::new("/"), &standard).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.service.as_str()), ("http://127.0.0.1:9/v1/traces", "tools"));
        assert_eq!(found.headers, [("api-key".into(), "abc".into()), ("x".into(), "1=2".into())]);
        let own = set(&[("telemetry.endpoint", "https://otel.example.org"), ("telemetry.sample", "0.25")]);
        let found = own.collector(Path::new("/"), &standard).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.sample), ("https://otel.example.org/v1/traces", 0.25));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_repeating_a_secret() {
        for (key, value) in [
            ("telemetry.endpoint", "127.0.0.1:4318"),
            ("telemetry.sample", "2"),
            ("telemetry.sample", "NaN"),
            ("telemetry.headers", "api-key=abc"),
        ] {
            assert!(TelemetrySettings::default().take(key, value).is_err(), "{key} {value}");
        }
        let wrong: BTreeMap<String, String> =
            [(ENDPOINT, "http://127.0.0.1:9"), (HEADERS, "s3cr3t")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let said = format!("{:#}", set(&[]).collector(Path::new("/"), &wrong).err().unwrap());
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}
