//! Who else hears of a finished call.

use std::sync::Arc;

use crate::{Delivery, Outcome, Scope};

pub(crate) async fn deliver(deliveries: &[Arc<dyn Delivery>], scope: &Scope, outcome: &Outcome) {
    for delivery in deliveries {
        delivery.deliver(scope, outcome).await;
    }
}
