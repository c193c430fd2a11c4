//! The configured provider.

use std::env;

use shared::projects::project::Organization;

/// Environment variables, set by `template.yaml`.
const ISSUER_VARIABLE: &str = "WAYMARK_OIDC_ISSUER";
const CLIENT_ID_VARIABLE: &str = "WAYMARK_OIDC_CLIENT_ID";
const CLIENT_SECRET_VARIABLE: &str = "WAYMARK_OIDC_CLIENT_SECRET";
const ALLOWED_DOMAINS_VARIABLE: &str = "WAYMARK_OIDC_ALLOWED_DOMAINS";
const PUBLIC_URL_VARIABLE: &str = "WAYMARK_PUBLIC_URL";

/// The organization of domains that name none.
const DEFAULT_ORGANIZATION: &str = "default";

/// The configured provider. It contains the client's secret, so it has no `Debug`.
#[derive(Clone)]
pub struct Settings {
    /// The issuer's URL.
    pub issuer: String,
    /// The client ID at the provider.
    pub client_id: String,
    /// The client secret at the provider.
    pub client_secret: String,
    /// The base URL of the API, without a slash at its end.
    pub public_url: String,
    /// Email domains whose users join an organization when they first sign in.
    pub allowed_domains: Vec<(String, Organization)>,
}

impl Settings {
    /// Reads the settings. Returns `None` if one is missing, except for the domains.
    pub(crate) fn from_environment() -> Option<Self> {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        Some(Self {
            issuer: text(ISSUER_VARIABLE)?,
            client_id: text(CLIENT_ID_VARIABLE)?,
            client_secret: text(CLIENT_SECRET_VARIABLE)?,
            public_url: text(PUBLIC_URL_VARIABLE)?.trim_end_matches('/').to_owned(),
            allowed_domains: parse_domains(&text(ALLOWED_DOMAINS_VARIABLE).unwrap_or_default()),
        })
    }

    /// Returns the organization that new users of a domain join, if any.
    pub(crate) fn organization_of(&self, domain: &str) -> Option<&Organization> {
        let mut domains = self.allowed_domains.iter();
        domains.find(|(allowed, _)| allowed == domain).map(|(_, organization)| organization)
    }
}

/// Parses `example.com=acme,example.org`. Skips malformed entries, which admit no users.
fn parse_domains(text: &str) -> Vec<(String, Organization)> {
    let entries = text.split(',').filter_map(|entry| {
        let (domain, organization) =
            entry.trim().split_once('=').unwrap_or((entry.trim(), DEFAULT_ORGANIZATION));
        let organization = Organization::parse(organization).ok()?;
        (!domain.is_empty()).then(|| (domain.to_ascii_lowercase(), organization))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_name_their_organization_or_the_default() {
        let listed = parse_domains("example.com=acme, Example.org,,=x,a.b=not/valid");
        let listed: Vec<_> = listed.iter().map(|(it, of)| (it.as_str(), of.as_str())).collect();
        assert_eq!(listed, [("example.com", "acme"), ("example.org", "default")]);
        assert!(parse_domains("").is_empty());
    }
}
