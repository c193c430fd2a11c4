//! A minimal function, the baseline for create-feature-flag.

use lambda_http::{Error, Request, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_http::run(service_fn(async |_: Request| Ok::<_, Error>("hello"))).await
}
