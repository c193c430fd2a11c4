"""Evaluates flags like an application. The expected results are in
tests/tests/end_to_end/flags/openfeature_sdks/.

OFREP_ENDPOINT and API_KEY configure the provider. Each line of standard input is an evaluation.
Prints a line with its details from the SDK.
"""

import json
import os
import sys

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

api.set_provider(
    OFREPProvider(
        os.environ["OFREP_ENDPOINT"],
        headers_factory=lambda: {"authorization": f"Bearer {os.environ['API_KEY']}"},
        # A busy computer can respond slowly.
        timeout=60,
    )
)
client = api.get_client()

for line in sys.stdin:
    evaluation = json.loads(line)
    context = evaluation.get("context", {})
    details = getattr(client, f"get_{evaluation['type']}_details")(
        evaluation["flag"],
        evaluation["default"],
        EvaluationContext(context.pop("targetingKey", None), context),
    )
    result = {
        "value": details.value,
        "reason": details.reason,
        "variant": details.variant,
        "errorCode": details.error_code,
        "errorMessage": details.error_message,
        "flagMetadata": details.flag_metadata,
    }
    print(json.dumps(result), flush=True)
