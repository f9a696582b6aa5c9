//! The only code that dials an address: which may be dialled, and everything between that and a capped body.

mod address;
mod allowed_host;
mod body;
mod client;
mod decode;
mod dial;
mod error;
mod follow;
mod name;
mod request;
mod resolve;
mod rules;
mod timeout_stream;
mod tls;

pub use allowed_host::{AllowedHost, AllowedHostError};
pub use body::{BodyEnd, ResponseBody};
pub use client::{FetchLimits, Response, WebClient};
pub use error::{Refusal, WebError};
pub use follow::{FetchFailure, FetchOutcome, UnfollowedRedirect};
pub use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header};
pub use request::{Request, is_forbidden};
pub use resolve::Resolver;
pub use rules::{AllowRemedy, PORTS, WebRules, WebTarget};
pub use url::Url;
