//! The alarms that operations have of their own.

use crate::function::Function;
use crate::template::line;

/// The alarm of an operation's server errors.
pub(crate) fn server_errors_alarm(function: &Function) -> String {
    format!("{}ServerErrorsAlarm", function.resource())
}

/// The alarms of all operations. Those of server errors also bring traffic back that is shifted to a new
/// version.
pub(crate) fn of_operations(functions: &[Function]) -> String {
    let mut alarms = Vec::new();
    for function in functions.iter().filter(|function| !function.is_job()) {
        alarms.push(server_errors(function));
        alarms.extend(function.metadata.slow_after.map(|millis| latency(function, millis)));
    }
    alarms.join("\n")
}

/// Counts answers with 5xx, which the function logs. A sandbox that crashed logs nothing: of what has
/// traffic shifted to it, these are counted too.
fn server_errors(function: &Function) -> String {
    let name = &function.name;
    let mut text = String::new();
    line(&mut text, 0, &format!("{}:", server_errors_alarm(function)));
    line(&mut text, 2, "Type: AWS::CloudWatch::Alarm\nProperties:");
    let title = format!("server errors of {name}");
    if function.metadata.canary {
        head(&mut text, &title, &format!("{name} answered with 5xx, or crashed, often."));
        line(
            &mut text,
            4,
            &format!(
                "Metrics:\n\
                 - Id: failures\n  Label: Answers with 5xx, and crashes\n  \
                 Expression: FILL(answers, 0) + FILL(crashes, 0)\n\
                 - Id: answers\n  ReturnData: false\n  MetricStat:\n    Metric:\n      \
                 Namespace: Waymark\n      MetricName: ServerErrors\n      Dimensions:\n        \
                 - {{Name: stack, Value: !Ref \"AWS::StackName\"}}\n        \
                 - {{Name: operation, Value: {name}}}\n    Period: 60\n    Stat: Sum\n\
                 - Id: crashes\n  ReturnData: false\n  MetricStat:\n    Metric:\n      \
                 Namespace: AWS/Lambda\n      MetricName: Errors\n      \
                 Dimensions: [{{Name: FunctionName, Value: !Ref {}}}]\n    Period: 60\n    Stat: Sum",
                function.resource()
            ),
        );
    } else {
        head(&mut text, &title, &format!("{name} answered with 5xx often."));
        line(
            &mut text,
            4,
            &format!(
                "Namespace: Waymark\nMetricName: ServerErrors\nDimensions:\n  \
                 - {{Name: stack, Value: !Ref \"AWS::StackName\"}}\n  \
                 - {{Name: operation, Value: {name}}}\nStatistic: Sum\nPeriod: 60"
            ),
        );
    }
    tail(&mut text, 1, "!Ref ServerErrorsPerMinute");
    text
}

/// Of how long a function takes, since Lambda counts that anyway.
fn latency(function: &Function, millis: u32) -> String {
    let name = &function.name;
    let mut text = String::new();
    line(&mut text, 0, &format!("{}LatencyAlarm:", function.resource()));
    line(&mut text, 2, "Type: AWS::CloudWatch::Alarm\nProperties:");
    let description = format!(
        "One in a hundred runs of {name} took longer than {millis} ms, for a quarter of an hour."
    );
    head(&mut text, &format!("slow {name}"), &description);
    line(
        &mut text,
        4,
        &format!(
            "Namespace: AWS/Lambda\nMetricName: Duration\n\
             Dimensions: [{{Name: FunctionName, Value: !Ref {}}}]\n\
             ExtendedStatistic: p99\n\
             # Of so few requests one is more than a hundredth.\n\
             EvaluateLowSampleCountPercentile: ignore\nPeriod: 300",
            function.resource()
        ),
    );
    tail(&mut text, 3, &millis.to_string());
    text
}

fn head(text: &mut String, title: &str, description: &str) {
    let title = format!("AlarmName: !Sub \"${{Stage}} ${{AWS::StackName}}: {title}\"");
    line(text, 4, &format!("{title}\nAlarmDescription: >-\n  {description}"));
}

fn tail(text: &mut String, periods: u32, threshold: &str) {
    line(
        text,
        4,
        &format!(
            "EvaluationPeriods: {periods}\nThreshold: {threshold}\n\
             ComparisonOperator: GreaterThanThreshold\nTreatMissingData: notBreaching\nAlarmActions:\n  \
             - !If [HasAlarmEmail, !Ref AlarmTopic, !Ref \"AWS::NoValue\"]\n  \
             - !If [HasAlarmTopic, !Ref AlarmTopicArn, !Ref \"AWS::NoValue\"]"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::{LIST, function_of};

    fn alarms(metadata: &str) -> String {
        of_operations(&[function_of("list-things", metadata, LIST).unwrap()])
    }

    #[test]
    fn an_operation_has_an_alarm_of_its_server_errors_alone() {
        let text = alarms("");
        assert!(text.starts_with("ListThingsServerErrorsAlarm:\n"), "{text}");
        assert!(text.contains("{Name: operation, Value: list-things}"), "{text}");
        assert!(!text.contains("AWS/Lambda") && !text.contains("LatencyAlarm"), "{text}");
    }

    #[test]
    fn that_of_what_has_traffic_shifted_to_it_counts_crashes() {
        let text = alarms("canary = true");
        assert!(text.contains("FILL(answers, 0) + FILL(crashes, 0)"), "{text}");
        assert!(text.contains("{Name: FunctionName, Value: !Ref ListThings}"), "{text}");
    }

    #[test]
    fn where_somebody_waits_there_is_one_of_latency() {
        let text = alarms("slow-after = 1500");
        assert!(text.contains("\nListThingsLatencyAlarm:\n"), "{text}");
        assert!(text.contains("    Threshold: 1500\n"), "{text}");
    }

    #[test]
    fn a_job_has_none() {
        let job = function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap();
        assert_eq!(of_operations(&[job]), "");
    }
}
