use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A name that nothing else in this run has.
pub fn fresh(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{what}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A payment, as the event `payment.success` tells of it.
#[derive(Clone, Debug)]
pub struct Payment {
    pub order: String,
    pub product: String,
    pub transaction: String,
    pub email: String,
}

impl Payment {
    pub fn of(order: &str, product: &str) -> Self {
        let email = format!("{order}@example.com");
        Self { order: order.into(), product: product.into(), transaction: fresh("txn"), email }
    }

    pub fn event(&self) -> Value {
        json!({
            "type": "payment.success",
            "paymentLink": {
                "id": "plink_1",
                "amount": 2599,
                "metadata": { "orderId": self.order, "productId": self.product },
            },
            "transaction": {
                "id": self.transaction,
                "completedAt": "2026-01-31T12:30:45.000Z",
                "paymentMethod": "card",
            },
            "customer": { "email": self.email },
        })
    }

    pub fn body(&self) -> Vec<u8> {
        self.event().to_string().into_bytes()
    }
}
