//! A login by a code that somebody types in a browser on any other device.

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{ErrorCode, ToolError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{CLIENT_NAME, SCOPES};
use crate::{
    remote::{Client, login::Tokens},
    show::{Out, safe::safe},
};

/// How this program says that it comes with a device code.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What a server that says `slow_down` wants added to the pause.
const SLOWER: Duration = Duration::from_secs(5);

/// A login that waits for somebody's yes.
pub(super) struct DeviceLogin {
    client_id: String,
    device_code: String,
    user_code: String,
    page: String,
    whole_page: Option<String>,
    pause: Duration,
    until: Instant,
}

impl DeviceLogin {
    /// Registers, and asks for a code.
    pub(super) async fn begin(client: &Client, about: &Value) -> Result<Self> {
        if about["device_authorization_endpoint"].as_str().is_none() {
            let message = format!("{} knows no login by code; update haft there, or use --print", client.url());
            return Err(ToolError::new(ErrorCode::UpstreamError, message).into());
        }
        let wish = json!({
            "client_name": CLIENT_NAME, "grant_types": [GRANT, "refresh_token"], "token_endpoint_auth_method": "none",
        });
        let registered = client.post("/oauth/register", &wish).await?;
        let client_id = field(client, &registered, "client_id")?;
        let given = client.post_form("/oauth/device", &[("client_id", &client_id), ("scope", SCOPES)]).await?;
        Ok(Self {
            client_id,
            device_code: field(client, &given, "device_code")?,
            user_code: field(client, &given, "user_code")?,
            page: field(client, &given, "verification_uri")?,
            whole_page: given["verification_uri_complete"].as_str().map(safe),
            pause: Duration::from_secs(given["interval"].as_u64().unwrap_or(5).clamp(1, 60)),
            until: Instant::now() + Duration::from_secs(given["expires_in"].as_u64().unwrap_or(600).min(3600)),
        })
    }

    /// Shows the code, and asks until somebody has answered.
    pub(super) async fn tokens(mut self, out: &Out, client: &Client) -> Result<Tokens> {
        self.show(out);
        let fields = [
            ("grant_type", GRANT),
            ("device_code", &*self.device_code.clone()),
            ("client_id", &*self.client_id.clone()),
        ];
        loop {
            self.wait(out).await?;
            let refused = match client.post_form("/oauth/token", &fields).await {
                Ok(given) => return Ok(Tokens::given(client.url(), &self.client_id, &given)?),
                Err(refused) => refused,
            };
            match refused.body["error"].as_str() {
                Some("authorization_pending") => {}
                Some("slow_down") => self.pause += SLOWER,
                Some("access_denied") => {
                    let message = "the login was refused: the person said no";
                    return Err(ToolError::new(ErrorCode::Unauthorized, message).into());
                }
                Some("expired_token") => return Err(too_late()),
                Some(_) => return Err(refused.into()),
                // A server that is away for a moment is asked again, less often.
                None if refused.error.recoverable => self.pause += SLOWER,
                None => return Err(refused.into()),
            }
        }
    }

    fn show(&self, out: &Out) {
        let mut lines = vec![
            format!("Open {} in a browser on any device, and type this code:", self.page),
            String::new(),
            format!("    {}", self.user_code),
            String::new(),
        ];
        lines.extend(self.whole_page.iter().map(|page| format!("Or open {page} and compare the code.")));
        for line in lines {
            // With --json the document at the end stands alone.
            match out.json {
                true => anstream::eprintln!("{line}"),
                false => drop(out.next_line(&line)),
            }
        }
    }

    /// Waits until the next request, and says at a terminal for how long the code counts.
    async fn wait(&self, out: &Out) -> Result<()> {
        let next = Instant::now() + self.pause;
        if next >= self.until {
            return Err(too_late());
        }
        while Instant::now() < next {
            let left = self.until.saturating_duration_since(Instant::now()).as_secs();
            let _is_seen = out.passing(&format!("waiting for your yes ({}:{:02} left)", left / 60, left % 60));
            sleep(Duration::from_secs(1).min(next.saturating_duration_since(Instant::now()))).await;
        }
        let _is_seen = out.passing("");
        Ok(())
    }
}

fn field(client: &Client, given: &Value, name: &str) -> Result<String> {
    let missing =
        || ToolError::new(ErrorCode::UpstreamError, format!("{} gave no `{name}`; update haft there", client.url()));
    // It is shown at a terminal, which obeys more than letters.
    Ok(given[name].as_str().map(safe).ok_or_else(missing)?)
}

fn too_late() -> anyhow::Error {
    ToolError::new(ErrorCode::Unauthorized, "nobody said yes in time; run `haft login` again").into()
}
