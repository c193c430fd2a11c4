//! The secrets that distributions in front of the API send, if there are any.

use std::env;

use subtle::{Choice, ConstantTimeEq};

use super::{ApiRequest, ApiResponse, StatusCode};

/// Environment variable with the accepted secrets, separated by commas; set by `template.yaml`. If
/// it is empty, no secret is required.
const ORIGIN_SECRET_VARIABLE: &str = "WAYMARK_ORIGIN_SECRET";
/// Environment variable that is `true` if the distribution belongs to the stack; set by
/// `template.yaml`.
const EDGE_VARIABLE: &str = "WAYMARK_EDGE";
/// The header with the secret.
pub(crate) const ORIGIN_SECRET: &str = "x-origin-secret";

/// The secrets that show that a request came through a distribution. Several are accepted while
/// one replaces another.
#[derive(Clone, Default)]
pub struct OriginSecrets {
    secrets: Vec<Vec<u8>>,
    /// `true` if the distribution belongs to the stack. Then requests can bypass it.
    is_edge: bool,
}

impl OriginSecrets {
    /// Reads the secrets from the environment.
    pub fn from_environment() -> Self {
        let secrets = Self::parse(&env::var(ORIGIN_SECRET_VARIABLE).unwrap_or_default());
        Self { is_edge: env::var(EDGE_VARIABLE).is_ok_and(|it| it == "true"), ..secrets }
    }

    /// Parses secrets that are separated by commas.
    pub fn parse(text: &str) -> Self {
        let secrets = text.split(',').map(str::trim).filter(|secret| !secret.is_empty());
        let secrets = secrets.map(|secret| secret.as_bytes().to_vec()).collect();
        Self { secrets, is_edge: false }
    }

    /// Returns the secrets of the stack's own distribution.
    #[must_use]
    pub fn of_edge(self) -> Self {
        Self { is_edge: true, ..self }
    }

    /// Returns `true` if the stack's own distribution sent this secret.
    pub(crate) fn admits_edge(&self, sent: &[u8]) -> bool {
        self.is_edge && self.admits(sent)
    }

    /// Returns the response to a request that did not come through the distribution, or `None`. It
    /// is API Gateway's response if its own address is disabled. Other requests are noted.
    pub fn reject(&self, incoming: &ApiRequest) -> Option<ApiResponse> {
        if self.secrets.is_empty() || self.is_edge {
            return None;
        }
        if incoming.header_values(ORIGIN_SECRET).any(|sent| self.admits(sent)) {
            incoming.note_distribution();
            return None;
        }
        let body = r#"{"message":"Forbidden"}"#.to_owned();
        Some(ApiResponse::of_json_text(StatusCode::FORBIDDEN, Some(body)))
    }

    /// Compares with every secret, in a time that depends on no more than their lengths.
    pub fn admits(&self, sent: &[u8]) -> bool {
        let none = Choice::from(0);
        self.secrets.iter().fold(none, |found, secret| found | secret[..].ct_eq(sent)).into()
    }
}

impl std::fmt::Debug for OriginSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OriginSecrets(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_secrets_are_admitted() {
        let secrets = OriginSecrets::parse("first-secret, second-secret,");
        for sent in ["first-secret", "second-secret"] {
            assert!(secrets.admits(sent.as_bytes()), "{sent}");
        }
        for sent in ["", "first", "first-secret,second-secret", "First-secret", " first-secret"] {
            assert!(!secrets.admits(sent.as_bytes()), "{sent}");
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        assert_eq!(format!("{:?}", OriginSecrets::parse("first-secret")), "OriginSecrets(…)");
    }
}
