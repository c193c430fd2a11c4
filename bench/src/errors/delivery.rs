//! Events of about 4 kB, as sentry-python sends them for an exception in a Django application.

use std::io::Write;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use shared::app::Ids;
use shared::projects::project::Project;
use shared::timestamp::Timestamp;

use crate::{Result, events};

/// Types, messages and functions of exceptions. Each becomes its own error.
const FAILURES: [(&str, &str, &str); 5] = [
    ("KeyError", "'billing_address'", "billing_country"),
    ("ValueError", "could not convert string to float: '12,50'", "parse_amount"),
    ("ConnectionError", "payments.example.com refused the connection", "authorize"),
    ("AttributeError", "'NoneType' object has no attribute 'total'", "total_of"),
    ("DoesNotExist", "Voucher matching query does not exist.", "redeem"),
];

/// A request that delivers one event.
pub(crate) struct Delivery {
    /// The request, as the function receives it.
    pub(crate) request: Bytes,
    /// The size of the event, in bytes.
    pub(crate) event_bytes: usize,
    /// The size of the compressed body, in bytes.
    pub(crate) body_bytes: usize,
}

/// Returns a delivery of an event with a new id. `number` selects the error.
pub(crate) fn delivery(project: &Project, number: usize, at: Timestamp) -> Result<Delivery> {
    let id = Ids::Random.new_uuid(at).simple().to_string();
    let event = event(&id, number, at).to_string();
    let header = json!({"event_id": id, "sent_at": at, "trace": trace(&id)});
    let item = json!({"type": "event", "content_type": "application/json", "length": event.len()});
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    write!(encoder, "{header}\n{item}\n{event}\n")?;
    let body = encoder.finish()?;
    let request = events::compressed_envelope(project, &body);
    Ok(Delivery { request, event_bytes: event.len(), body_bytes: body.len() })
}

fn event(id: &str, number: usize, at: Timestamp) -> Json {
    let (error_type, message, function) = FAILURES[number % FAILURES.len()];
    let order = 100_000 + number;
    json!({
        "event_id": id,
        "timestamp": at,
        "level": "error",
        "platform": "python",
        "release": "shop@23.10.7",
        "environment": "production",
        "server_name": "web-7c9f4b6d58-x2x9k",
        "transaction": "/checkout/payment",
        "transaction_info": {"source": "route"},
        "exception": {"values": [{
            "type": error_type,
            "value": message,
            "module": null,
            "mechanism": {"type": "django", "handled": false},
            "stacktrace": {"frames": [
                framework_frame(),
                frame("shop.checkout.views", "pay", 88, order),
                frame("shop.billing.payments", "charge", 142, order),
                frame("shop.billing.amounts", function, 31, order),
                frame("shop.billing.decimals", function, 12, order),
            ]},
        }]},
        "contexts": {
            "trace": trace(id),
            "runtime": {"name": "CPython", "version": "3.13.7", "build": "3.13.7 (main)"},
            "browser": {"name": "Chrome", "version": "141.0.0"},
            "os": {"name": "Windows", "version": "10"},
        },
        "request": {
            "method": "POST",
            "url": "https://shop.example.com/checkout/payment",
            "query_string": "",
            "headers": {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "Host": "shop.example.com",
                "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 \
                               (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
            },
            "env": {"SERVER_NAME": "web-7c9f4b6d58-x2x9k", "SERVER_PORT": "8000"},
        },
        "user": {"id": (number % 977).to_string(), "geo": {"country_code": "DE"}},
        "tags": {"tier": "gold", "payment_method": "card"},
        "breadcrumbs": {"values": [
            breadcrumb("query", "SELECT id, total, currency FROM shop_order WHERE id = %s", at),
            breadcrumb("httplib", "POST https://payments.example.com/v2/charges", at),
            breadcrumb("shop.billing", "the charge was not accepted", at),
        ]},
        "extra": {"order": order, "attempt": 2},
        "sdk": {
            "name": "sentry.python.django",
            "version": "2.75.0",
            "packages": [{"name": "pypi:sentry-sdk", "version": "2.75.0"}],
            "integrations": ["argv", "atexit", "django", "excepthook", "logging", "stdlib"],
        },
        "modules": {"django": "5.2.7", "gunicorn": "23.0.0", "psycopg": "3.2.10"},
    })
}

fn trace(id: &str) -> Json {
    let span = id.get(..16).unwrap_or(id);
    json!({"trace_id": id, "span_id": span, "environment": "production", "release": "shop@23.10.7"})
}

fn framework_frame() -> Json {
    json!({
        "filename": "django/core/handlers/base.py",
        "abs_path": "/srv/venv/lib/python3.13/site-packages/django/core/handlers/base.py",
        "module": "django.core.handlers.base",
        "function": "_get_response",
        "lineno": 197,
        "context_line": "response = wrapped_callback(request, *callback_args, **callback_kwargs)",
        "in_app": false,
    })
}

fn frame(module: &str, function: &str, line: u32, order: usize) -> Json {
    let file = format!("{}.py", module.replace('.', "/"));
    json!({
        "abs_path": format!("/srv/{file}"),
        "filename": file,
        "module": module,
        "function": function,
        "lineno": line,
        "pre_context": [
            format!("def {function}(order, amount):"),
            "    if order.is_paid:",
            "        return order.receipt",
        ],
        "context_line": format!("    return {function}_of(order, amount.quantize(CENT))"),
        "post_context": ["", "", "class Unpaid(Exception):"],
        "vars": {"order": format!("<Order: {order}>"), "amount": "Decimal('129.90')"},
        "in_app": true,
    })
}

fn breadcrumb(category: &str, message: &str, at: Timestamp) -> Json {
    json!({"type": "default", "category": category, "message": message, "timestamp": at, "data": {}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_about_4_kilobytes() {
        let at = Timestamp::from_millis(1_795_000_000_000);
        for number in 0..FAILURES.len() {
            let bytes = event("5a1c0f3e9b7d4c2ea1b2c3d4e5f60718", number, at).to_string().len();
            assert!((3_900..=4_200).contains(&bytes), "{bytes}");
        }
    }
}
