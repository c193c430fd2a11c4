#!/usr/bin/env bash
# Tries in a scratch account what only AWS can show, and says of each whether it held. NOT YET RUN ON AWS:
# docs/operations.md, "What was tried, and what only AWS can show".
#
# Usage: AWS_REGION=eu-west-1 packaging/try_in_aws.sh
#
# It deploys the stack of CONFIG=staging twice, which costs some cents, and leaves it there.
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
held=0 failed=0
check() {
    local what=$1
    shift
    if "$@"; then held=$((held + 1)) && echo "held: $what"; else failed=$((failed + 1)) && echo "FAILED: $what" >&2; fi
}
answers() { [ "$(curl --silent --output /dev/null --write-out '%{http_code}' -H "x-api-key: $key" "$url")" = "$1" ]; }

make deploy CONFIG=staging
first=$(parameter Release)
slug=tried-$first
waymark project create --name Tried --slug "$slug" --base-url "$(output BaseUrl)"
key=$(waymark key create --project "$slug" --scopes flags:read)
url=$(output BaseUrl)/v0/project/$slug/feature-flags
check "the first release answers" answers 200

make deploy CONFIG=staging PARAMETERS="LogRetentionInDays=7"
check "a second one takes over through the alias" answers 200
make roll-back CONFIG=staging
check "the roll-back names the release that it brought back" test "$(parameter Release)" != "${first}"
check "its code is that of the first" grep --quiet -- "-$first\$" <<< "$(parameter Release)"
check "what was rolled back to answers" answers 200

started=$(date -u +%FT%TZ)
sleep 360 # Point-in-time recovery is some minutes behind.
make restore-tables CONFIG=staging AT="$started" TABLES="feature-flags flag-changes"
suffix=restored-$(tr -d ':-' <<< "$started")
check "a restored table is protected as its source is" \
    test "$(aws dynamodb describe-table --table-name "$stack-feature-flags-$suffix" --query Table.DeletionProtectionEnabled)" = \
    "$(aws dynamodb describe-table --table-name "$stack-feature-flags" --query Table.DeletionProtectionEnabled)"
restored=feature-flags:$suffix,flag-changes:$suffix
make roll-back CONFIG=staging TO="$first" PARAMETERS="RestoredTables=$restored"
check "the functions may use restored tables" answers 200
make roll-back CONFIG=staging TO="$first" PARAMETERS='RestoredTables=\"\"' # The quotes reach SAM, which takes no empty value without them.
check "and go back" test -z "$(parameter RestoredTables)"

# The restored tables are still there, and the stack uses its own again.
WAYMARK_RESTORED_TABLES="" waymark project delete "$slug" --yes
sleep 61
check "a deleted project refuses requests within a minute" answers 404
echo "In 26 hours, \`waymark erasure list\` has to be empty, and no table may have $slug."
echo "$held held, $failed failed"
[ "$failed" -eq 0 ]
