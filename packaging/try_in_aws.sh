#!/usr/bin/env bash
# Runs the checks that need AWS in a scratch account and prints each result. NOT YET RUN ON AWS:
# packaging/README.md, "Tested and untested procedures".
#
# Usage: AWS_REGION=eu-west-1 packaging/try_in_aws.sh
#
# Deploys the stack of CONFIG=staging twice, which costs some cents. The stack stays afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stack=waymark-staging
waymark() { cargo run --release --quiet --bin waymark -- --table-prefix "$stack-" "$@"; }
output() {
    aws cloudformation describe-stacks --stack-name "$stack" --output text \
        --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue"
}
parameter() {
    aws cloudformation describe-stacks --stack-name "$stack" --output text \
        --query "Stacks[0].Parameters[?ParameterKey=='$1'].ParameterValue"
}
passed=0 failed=0
check() {
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)) && echo "passed: $what"; else failed=$((failed + 1)) && echo "FAILED: $what" >&2; fi
}
returns() { [ "$(curl --silent --output /dev/null --write-out '%{http_code}' -H "x-api-key: $key" "$url")" = "$1" ]; }

make deploy CONFIG=staging YES=1
first=$(parameter Release)
slug=tried-$first
waymark project create --name Tried --slug "$slug" --base-url "$(output BaseUrl)"
key=$(waymark key create --project "$slug" --scopes flags:read)
url=$(output BaseUrl)/v0/project/$slug/feature-flags
check "the first release returns 200" returns 200

make deploy CONFIG=staging YES=1 PARAMETERS="LogRetentionInDays=7"
check "the second release takes over" returns 200
make roll-back CONFIG=staging
check "the roll-back has a release number of its own" test "$(parameter Release)" != "${first}"
check "the roll-back runs the code of the first release" grep --quiet -- "-$first\$" <<< "$(parameter Release)"
check "the restored release returns 200" returns 200

started=$(date -u +%FT%TZ)
sleep 360 # Point-in-time recovery is some minutes behind.
make restore-tables CONFIG=staging AT="$started" TABLES="feature-flags flag-changes"
suffix=restored-$(tr -d ':-' <<< "$started")
check "a restored table has the deletion protection of its source" \
    test "$(aws dynamodb describe-table --table-name "$stack-feature-flags-$suffix" --query Table.DeletionProtectionEnabled)" = \
    "$(aws dynamodb describe-table --table-name "$stack-feature-flags" --query Table.DeletionProtectionEnabled)"
restored=feature-flags:$suffix,flag-changes:$suffix
make roll-back CONFIG=staging TO="$first" PARAMETERS="RestoredTables=$restored"
check "functions can use restored tables" returns 200
make roll-back CONFIG=staging TO="$first" PARAMETERS=RestoredTables=
check "functions switch back to the original tables" test -z "$(parameter RestoredTables)"

# The restored tables still exist, but the stack uses its original tables again.
WAYMARK_RESTORED_TABLES="" waymark project delete "$slug" --yes
sleep 61
check "a deleted project returns 404 within a minute" returns 404
echo "Check in 26 hours: \`waymark erasure list\` must be empty, and no table can contain $slug."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
