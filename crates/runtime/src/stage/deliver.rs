//! Wakes whoever else wants to hear of a call: that it asks, and that it has ended.

use std::sync::Arc;

use crate::{Delivery, Outcome, Question, Scope};

pub(crate) async fn deliver(deliveries: &[Arc<dyn Delivery>], scope: &Scope, outcome: &Outcome) {
    for delivery in deliveries {
        delivery.ended(scope, outcome).await;
    }
}

pub(crate) async fn tell_of_question(deliveries: &[Arc<dyn Delivery>], scope: &Scope, question: &Question) {
    for delivery in deliveries {
        delivery.asked(scope, question).await;
    }
}
