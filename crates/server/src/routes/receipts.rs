//! Receipts: what a yes was about, signed.

use axum::http::Method;
use haft_platform::{Permission, Receipt, ReceiptKey};

use super::calls::seen;
use crate::{
    problem::Problem,
    route::{Asked, JsonReply, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    let own = RouteAccess::Needs(Permission::CallsOwnRead);
    let (of_call, of_key) = ("What a yes was about, signed.", "The public key that receipts are checked by.");
    vec![
        route(Method::GET, "/api/calls/{id}/receipt", own, of_call, show),
        route(Method::GET, "/api/receipts/key", RouteAccess::Open, of_key, key),
    ]
}

/// The receipt of a call that was allowed.
async fn show(asked: Asked) -> Result<JsonReply<Receipt>, Problem> {
    let record = seen(&asked).await?;
    Ok(JsonReply::ok(asked.app.platform.receipt(&record).await?))
}

/// What receipts are checked by, for anybody.
async fn key(asked: Asked) -> Result<JsonReply<ReceiptKey>, Problem> {
    Ok(JsonReply::ok(asked.app.platform.receipt_key()?))
}
