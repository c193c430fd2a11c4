//! The functions' environment: the embedded engine with tables, projects and an API key.

use std::fmt::Display;
use std::path::Path;

use aws_sdk_dynamodb::Client;

use local::engine::Engine;
use local::{demo, environment, template};
use shared::dynamodb::{Store, client};
use shared::projects::project::{Project, ProjectId};

use crate::Result;
use crate::request::Request;

/// An engine in memory, and an API key with all scopes.
pub(crate) struct Stack {
    engine: Engine,
    client: Client,
    store: Store,
    api_key: String,
}

impl Stack {
    pub(crate) async fn start() -> Result<Self> {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let tables = template::read_tables(&template)?;
        let engine = Engine::start(([127, 0, 0, 1], 0).into(), None, &tables)?;
        let client = client::for_endpoint(&engine.endpoint())?;
        let store = Store::new(client.clone(), environment::table_prefix());
        let api_key = demo::create_key(&store, |record| record).await?;
        Ok(Self { engine, client, store, api_key })
    }

    /// Returns the URL of the engine.
    pub(crate) fn endpoint(&self) -> String {
        self.engine.endpoint()
    }

    /// Returns a client for direct access to the tables.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a request with the API key. `parameters` are the values of the path parameters.
    pub(crate) fn request(&self, route: &str, parameters: &[&dyn Display]) -> Request {
        Request::new(route, parameters).header("x-api-key", &self.api_key)
    }

    /// Creates a project.
    pub(crate) async fn project(&self, slug: &str) -> Result<ProjectId> {
        Ok(demo::ensure_project(&self.store, slug, slug).await?)
    }

    /// Creates a project, and returns it with its ingest id and public key.
    pub(crate) async fn project_with_dsn(&self, slug: &str) -> Result<Project> {
        let id = self.project(slug).await?;
        Ok(self.store.read_project(id).await?.ok_or("a project is missing")?)
    }
}
