//! The key of a delivery: the public part of a DSN (`docs/semantics/error-tracking.md`,
//! "Deliveries").

use shared::projects::dsn::PublicKey;

use super::IngestionFault;

/// Places in a request that can contain its key.
#[derive(Debug, Clone, Copy, Default)]
pub struct CredentialSources<'r> {
    /// The numeric project id of the path.
    pub ingest_id: &'r str,
    /// All values of the query parameter `sentry_key`.
    pub query_keys: &'r [&'r str],
    /// All values of the header `x-sentry-auth`.
    pub sentry_auth: &'r [&'r str],
    /// All values of the header `authorization`. Schemes other than `Sentry` are ignored.
    pub authorization: &'r [&'r str],
}

impl CredentialSources<'_> {
    /// `true` if a place outside the body contains a key.
    pub fn hold_a_key(&self) -> bool {
        !self.keys().is_empty()
    }

    /// Returns the key, which can also be in the `dsn` of an envelope's header. All present keys
    /// must be equal, and a DSN must name the project of the path.
    pub fn read(&self, envelope_dsn: Option<&str>) -> Result<PublicKey, IngestionFault> {
        let mut keys = self.keys();
        if let Some(dsn) = envelope_dsn {
            let (key, ingest_id) = split_dsn(dsn).ok_or(IngestionFault::Unauthorized)?;
            if ingest_id != self.ingest_id {
                return Err(IngestionFault::Unauthorized);
            }
            keys.push(key.to_owned());
        }
        let mut keys = keys.iter().map(|key| PublicKey::parse(key));
        let first = keys.next().flatten().ok_or(IngestionFault::Unauthorized)?;
        if keys.any(|key| key.as_ref() != Some(&first)) {
            return Err(IngestionFault::Unauthorized);
        }
        Ok(first)
    }

    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.query_keys.iter().map(|key| (*key).to_owned()).collect();
        for value in self.sentry_auth {
            keys.extend(header_keys(sentry_parameters(value).unwrap_or(value)));
        }
        for parameters in self.authorization.iter().filter_map(|value| sentry_parameters(value)) {
            keys.extend(header_keys(parameters));
        }
        keys
    }
}

/// Returns the parameters of `Sentry k=v, …`. The scheme's case does not matter (RFC 9110 §11.1).
fn sentry_parameters(value: &str) -> Option<&str> {
    const SCHEME: &str = "sentry";
    let (scheme, parameters) = value.trim_start().split_at_checked(SCHEME.len())?;
    let is_sentry = scheme.eq_ignore_ascii_case(SCHEME)
        && parameters.bytes().next().is_some_and(|byte| byte.is_ascii_whitespace());
    is_sentry.then_some(parameters)
}

/// Returns the values of `sentry_key` among parameters that commas, spaces or both separate.
fn header_keys(parameters: &str) -> impl Iterator<Item = String> {
    let pairs = parameters.split([',', ' ', '\t']).filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(name, _)| name.eq_ignore_ascii_case("sentry_key"))
        .map(|(_, value)| value.trim_matches('"').to_owned())
}

/// Returns the key and the project id of `scheme://key[:secret]@host[/prefix]/id`.
fn split_dsn(dsn: &str) -> Option<(&str, &str)> {
    let (_, rest) = dsn.split_once("://")?;
    let (user, location) = rest.split_once('@')?;
    let key = user.split(':').next()?;
    let (_, ingest_id) = location.trim_end_matches('/').rsplit_once('/')?;
    Some((key, ingest_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "ffff456789abcdef0123456789abcdef";

    fn read(
        sources: CredentialSources<'_>,
        envelope_dsn: Option<&str>,
    ) -> Result<String, IngestionFault> {
        let key = CredentialSources { ingest_id: "42", ..sources }.read(envelope_dsn);
        key.map(|key| key.to_string())
    }

    #[test]
    fn reads_the_key_from_each_place() {
        let query = CredentialSources { query_keys: &[KEY], ..Default::default() };
        assert!(query.hold_a_key());
        assert_eq!(read(query, None), Ok(KEY.into()));
        for parameters in [
            format!("sentry_key={KEY}, sentry_version=7, sentry_client=sentry.python/2.75.0"),
            format!("sentry_version=7,sentry_client=x/1,sentry_key={KEY},sentry_secret=abc"),
            format!("sentry_version=7 sentry_key={}", KEY.to_uppercase()),
            format!("  sentry_timestamp=1 ,  sentry_key={KEY}"),
        ] {
            let value = format!("Sentry {parameters}");
            let values = [value.as_str()];
            let sentry_auth = CredentialSources { sentry_auth: &values, ..Default::default() };
            assert!(sentry_auth.hold_a_key());
            assert_eq!(read(sentry_auth, None), Ok(KEY.into()), "{value}");
            let value = format!("sentry {parameters}");
            let values = [value.as_str()];
            let authorization = CredentialSources { authorization: &values, ..Default::default() };
            assert!(authorization.hold_a_key());
            assert_eq!(read(authorization, None), Ok(KEY.into()), "{value}");
        }
        for dsn in [
            format!("https://{KEY}@errors.example.com/42"),
            format!("https://{KEY}:secret@example.com:8443/prefix/a/42/"),
        ] {
            assert_eq!(read(CredentialSources::default(), Some(&dsn)), Ok(KEY.into()), "{dsn}");
        }
        assert!(!CredentialSources::default().hold_a_key());
    }

    #[test]
    fn rejects_missing_wrong_and_contradictory_keys() {
        let header = format!("Sentry sentry_key={OTHER}");
        let dsn = format!("https://{OTHER}@example.com/42");
        let other_project = format!("https://{KEY}@example.com/43");
        let query = CredentialSources { query_keys: &[KEY], ..Default::default() };
        for (sources, envelope_dsn) in [
            (CredentialSources::default(), None),
            (CredentialSources { query_keys: &[""], ..Default::default() }, None),
            (CredentialSources { query_keys: &["xyz"], ..Default::default() }, None),
            (CredentialSources { query_keys: &[KEY, OTHER], ..Default::default() }, None),
            (CredentialSources { authorization: &["Bearer wm_x"], ..Default::default() }, None),
            (CredentialSources { sentry_auth: &[&header], ..query }, None),
            (query, Some(dsn.as_str())),
            (CredentialSources::default(), Some(other_project.as_str())),
            (query, Some("x")),
        ] {
            let result = read(sources, envelope_dsn);
            assert_eq!(result, Err(IngestionFault::Unauthorized), "{sources:?}");
        }
    }

    #[test]
    fn accepts_equal_keys_and_ignores_other_schemes() {
        let header = format!("Sentry sentry_key={KEY}");
        let dsn = format!("https://{KEY}@example.com/42");
        let sources = CredentialSources {
            query_keys: &[KEY],
            sentry_auth: &[&header],
            authorization: &["Bearer wm_x", &header],
            ..Default::default()
        };
        assert_eq!(read(sources, Some(&dsn)), Ok(KEY.into()));
    }
}
