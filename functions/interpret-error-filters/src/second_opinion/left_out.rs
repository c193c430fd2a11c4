//! What stands for a model in a binary that is built without the feature `bedrock`.

use std::convert::Infallible;
use std::future::Ready;

use interpreter::{Filter, Request};
use shared::dynamodb::client::ClientError;

use super::{MODEL_VARIABLE, OpinionError, model_id};

/// A model that there never is.
#[derive(Debug, Clone)]
pub struct Model(Infallible);

impl Model {
    /// No model; where the environment names one nevertheless, the log says why it is not asked.
    pub fn from_environment() -> Result<Option<Self>, ClientError> {
        if let Some(id) = model_id() {
            tracing::warn!(
                model = id,
                "{MODEL_VARIABLE} names a model, but this binary was built without the feature \
                 `bedrock`: no model is asked"
            );
        }
        Ok(None)
    }

    pub(super) fn ask(&self, _: &Request) -> Ready<Result<Vec<Filter>, OpinionError>> {
        match self.0 {}
    }
}
