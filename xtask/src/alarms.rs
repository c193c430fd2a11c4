//! Alarms of each operation.

use crate::function::Function;
use crate::template::line;

/// Returns the resource name of an operation's server error alarm.
pub(crate) fn server_errors_alarm(function: &Function) -> String {
    format!("{}ServerErrorsAlarm", function.resource())
}

/// Returns the alarms of all operations. Server error alarms also roll back a traffic shift to a
/// new version.
pub(crate) fn of_operations(functions: &[Function]) -> String {
    let mut alarms = Vec::new();
    for function in functions.iter().filter(|function| !function.is_job()) {
        alarms.push(server_errors(function));
        alarms.extend(function.metadata.slow_after.map(|millis| latency(function, millis)));
    }
    alarms.join("\n")
}

/// Returns the alarm for 5xx responses, which the function logs. Crashed execution environments log
/// nothing, so alarms of canary functions also count Lambda errors.
fn server_errors(function: &Function) -> String {
    let name = &function.name;
    let mut text = String::new();
    line(&mut text, 0, &format!("{}:", server_errors_alarm(function)));
    line(&mut text, 2, "Type: AWS::CloudWatch::Alarm\nProperties:");
    let title = format!("server errors of {name}");
    if function.metadata.canary {
        head(&mut text, &title, &format!("{name} often returned 5xx or crashed."));
        line(
            &mut text,
            4,
            &format!(
                "Metrics:\n\
                 - Id: failures\n  Label: 5xx responses and crashes\n  \
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
        head(&mut text, &title, &format!("{name} often returned 5xx."));
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

/// Returns the alarm for the p99 duration, a metric that Lambda provides.
fn latency(function: &Function, millis: u32) -> String {
    let name = &function.name;
    let mut text = String::new();
    line(&mut text, 0, &format!("{}LatencyAlarm:", function.resource()));
    line(&mut text, 2, "Type: AWS::CloudWatch::Alarm\nProperties:");
    let description = format!("The p99 duration of {name} exceeded {millis} ms for 15 minutes.");
    head(&mut text, &format!("slow {name}"), &description);
    line(
        &mut text,
        4,
        &format!(
            "Namespace: AWS/Lambda\nMetricName: Duration\n\
             Dimensions: [{{Name: FunctionName, Value: !Ref {}}}]\n\
             ExtendedStatistic: p99\n\
             # With few requests, a single slow one exceeds 1%.\n\
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
    fn operations_have_a_server_error_alarm() {
        let text = alarms("");
        assert!(text.starts_with("ListThingsServerErrorsAlarm:\n"), "{text}");
        assert!(text.contains("{Name: operation, Value: list-things}"), "{text}");
        assert!(!text.contains("AWS/Lambda") && !text.contains("LatencyAlarm"), "{text}");
    }

    #[test]
    fn canary_alarms_count_crashes() {
        let text = alarms("canary = true");
        assert!(text.contains("FILL(answers, 0) + FILL(crashes, 0)"), "{text}");
        assert!(text.contains("{Name: FunctionName, Value: !Ref ListThings}"), "{text}");
    }

    #[test]
    fn slow_after_adds_a_latency_alarm() {
        let text = alarms("slow-after = 1500");
        assert!(text.contains("\nListThingsLatencyAlarm:\n"), "{text}");
        assert!(text.contains("    Threshold: 1500\n"), "{text}");
    }

    #[test]
    fn jobs_have_no_alarms() {
        let job = function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap();
        assert_eq!(of_operations(&[job]), "");
    }
}
