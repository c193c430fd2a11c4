//! The secret that a distribution in front of the API sends, where there is one.

use std::env;

use subtle::{Choice, ConstantTimeEq};

use super::{ApiRequest, ApiResponse, StatusCode};

/// The secrets that are taken, with commas between them; set by `template.yaml`. Nothing: none is asked
/// for.
const ORIGIN_SECRET_VARIABLE: &str = "WAYMARK_ORIGIN_SECRET";
/// The header that has it.
const HEADER: &str = "x-origin-secret";

/// What requests must bring to show that they came through the distribution. Several secrets are taken
/// while one takes the place of another.
#[derive(Default)]
pub struct OriginSecrets(Vec<Vec<u8>>);

impl OriginSecrets {
    /// What the environment says.
    pub fn from_environment() -> Self {
        Self::parse(&env::var(ORIGIN_SECRET_VARIABLE).unwrap_or_default())
    }

    /// Secrets with commas between them.
    pub fn parse(text: &str) -> Self {
        let secrets = text.split(',').map(str::trim).filter(|secret| !secret.is_empty());
        Self(secrets.map(|secret| secret.as_bytes().to_vec()).collect())
    }

    /// The answer to a request that did not come through the distribution: the one that API Gateway gives
    /// where its own address is switched off.
    pub fn refuse(&self, incoming: &ApiRequest) -> Option<ApiResponse> {
        if self.0.is_empty() || incoming.header_values(HEADER).any(|sent| self.admits(sent)) {
            return None;
        }
        let body = r#"{"message":"Forbidden"}"#.to_owned();
        Some(ApiResponse::of_json_text(StatusCode::FORBIDDEN, Some(body)))
    }

    /// Compares with all of them, in a time that tells nothing of any but its length.
    fn admits(&self, sent: &[u8]) -> bool {
        let none = Choice::from(0);
        self.0.iter().fold(none, |found, secret| found | secret[..].ct_eq(sent)).into()
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
    fn any_of_the_secrets_is_taken_and_nothing_else() {
        let secrets = OriginSecrets::parse("first-secret, second-secret,");
        for sent in ["first-secret", "second-secret"] {
            assert!(secrets.admits(sent.as_bytes()), "{sent}");
        }
        for sent in ["", "first", "first-secret,second-secret", "First-secret", " first-secret"] {
            assert!(!secrets.admits(sent.as_bytes()), "{sent}");
        }
    }

    #[test]
    fn nothing_shows_them() {
        assert_eq!(format!("{:?}", OriginSecrets::parse("first-secret")), "OriginSecrets(…)");
    }
}
