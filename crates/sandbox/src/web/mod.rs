//! The only code that dials an address: which may be dialled, and everything between that and a capped body.

mod address;
mod allowed;
mod body;
mod client;
mod decode;
mod dial;
mod error;
mod follow;
mod name;
mod paced;
mod request;
mod resolve;
mod rules;
mod tls;

pub use allowed::{Allowed, AllowedError};
pub use body::{Body, End};
pub use client::{Client, Limits, Response};
pub use error::{Refusal, WebError};
pub use follow::{Failed, Fetched, NotFollowed};
pub use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header};
pub use request::{Request, is_forbidden};
pub use resolve::Resolver;
pub use rules::{PORTS, Rules, Target};
pub use url::Url;
