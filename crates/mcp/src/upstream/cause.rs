//! Why a conversation went wrong, in our own words: those of rmcp name its types.

use std::error::Error;

use haft_sandbox::web::WebError;
use rmcp::{
    model::ProtocolVersion,
    service::{ClientInitializeError, ServiceError},
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

const ENDED: &str = "it ended the conversation";

/// Why a request was not answered.
pub(super) fn of_request(err: &ServiceError) -> String {
    if let ServiceError::TransportSend(err) = err {
        of_transport(err)
    } else if let ServiceError::TransportClosed = err {
        ENDED.to_owned()
    } else {
        err.to_string()
    }
}

/// Whether a request cannot have reached its server: nobody was there.
pub(super) fn was_never_sent(err: &ServiceError) -> bool {
    let ServiceError::TransportSend(err) = err else { return false };
    let Some(StreamableHttpError::Client(err)) = err.error.downcast_ref::<StreamableHttpError<WebError>>() else {
        return false;
    };
    err.nothing_sent()
}

/// Why a conversation did not begin.
pub(super) fn of_beginning(err: &ClientInitializeError) -> String {
    if let ClientInitializeError::TransportError { error, .. } = err {
        of_transport(error)
    } else if let ClientInitializeError::JsonRpcError(data) = err {
        format!("it answers with an error: {}", data.message)
    } else if let ClientInitializeError::ConnectionClosed(_) = err {
        ENDED.to_owned()
    } else if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = err {
        of_beginning(fallback)
    } else if let ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } = err {
        of_versions(server_supported)
    } else {
        "its answer is none to what was asked".to_owned()
    }
}

/// That a server speaks none of the versions that haft does.
pub(super) fn of_versions(spoken: &[ProtocolVersion]) -> String {
    let listed = |versions: &[ProtocolVersion]| {
        versions.iter().map(|version| format!("`{}`", short(version.as_str()))).collect::<Vec<_>>().join(", ")
    };
    format!(
        "it speaks MCP in version {}, and haft only in {}; use another version of the server",
        listed(spoken),
        listed(ProtocolVersion::KNOWN_VERSIONS)
    )
}

/// As much as a version needs.
fn short(version: &str) -> String {
    version.chars().take(20).collect()
}

fn of_transport(err: &DynamicTransportError) -> String {
    match err.error.downcast_ref::<StreamableHttpError<WebError>>() {
        Some(StreamableHttpError::UnexpectedServerResponse(why)) => why.to_string(),
        Some(StreamableHttpError::Client(err)) => with_sources(err),
        Some(StreamableHttpError::TransportChannelClosed) => ENDED.to_owned(),
        Some(StreamableHttpError::Deserialize(err)) => format!("its answer is none of the protocol's: {err}"),
        Some(StreamableHttpError::Io(err)) => with_sources(err),
        Some(other) => other.to_string(),
        None => with_sources(err.error.as_ref()),
    }
}

fn with_sources(err: &(dyn Error + 'static)) -> String {
    let (mut said, mut cause) = (err.to_string(), err.source());
    while let Some(err) = cause {
        said.push_str(&format!(": {err}"));
        cause = err.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use haft_sandbox::web::WebError;
    use rmcp::{
        model::ProtocolVersion,
        service::{ClientInitializeError, ServiceError},
        transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
    };

    use super::{of_beginning, of_request, of_versions};

    fn sent(why: &'static str) -> DynamicTransportError {
        let error = StreamableHttpError::<WebError>::UnexpectedServerResponse(why.into());
        DynamicTransportError::from_parts("rmcp::transport::worker::X", TypeId::of::<()>(), Box::new(error))
    }

    #[test]
    fn no_cause_names_a_type() {
        let error = ClientInitializeError::TransportError { error: sent("HTTP 500"), context: "when".into() };
        assert_eq!(of_beginning(&error), "HTTP 500");
        let both = ClientInitializeError::LegacyFallbackFailed {
            discover: Box::new(ClientInitializeError::Cancelled),
            fallback: Box::new(error),
        };
        assert_eq!(of_beginning(&both), "HTTP 500");
        assert_eq!(
            of_beginning(&ClientInitializeError::ExpectedInitResult(None)),
            "its answer is none to what was asked"
        );
        assert_eq!(of_request(&ServiceError::TransportSend(sent("HTTP 502"))), "HTTP 502");
        assert_eq!(of_request(&ServiceError::TransportClosed), "it ended the conversation");
    }

    #[test]
    fn versions_that_nobody_knows_are_named_beside_ours() {
        let said = of_versions(&[ProtocolVersion::V_2024_11_05]);
        assert!(said.starts_with("it speaks MCP in version `2024-11-05`, and haft only in `2024-11-05`"), "{said}");
        assert!(said.contains("`2026-07-28`"), "{said}");
    }
}
