//! What the default binary does where its environment names a model.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use ::interpret_error_filters::second_opinion::MODEL_VARIABLE;
use tests::function_binary;

/// The first line that the binary logs with a model of this id.
fn first_line(model_id: &str) -> String {
    let nowhere = "127.0.0.1:1";
    let mut binary = Command::new(function_binary("interpret-error-filters"))
        .env_clear()
        .env(MODEL_VARIABLE, model_id)
        .env("AWS_LAMBDA_RUNTIME_API", nowhere)
        .env("AWS_LAMBDA_FUNCTION_NAME", "interpret-error-filters")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_REGION", "local")
        .env("AWS_ENDPOINT_URL_DYNAMODB", format!("http://{nowhere}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(binary.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _ = binary.kill();
    binary.wait().unwrap();
    line
}

#[test]
fn says_at_the_start_that_it_cannot_ask_a_model() {
    let line = first_line("vendor.model-v1:0");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["level"], &line["model"]), (&"WARN".into(), &"vendor.model-v1:0".into()));
    assert!(line["message"].as_str().unwrap().contains("without the feature `bedrock`"), "{line}");
}

#[test]
fn says_nothing_where_no_model_is_named() {
    assert!(!first_line("").contains("bedrock"));
}
