"""Evaluates flags as an application would. What must come of it stands in
tests/tests/end_to_end/flags/openfeature_sdks/.

OFREP_ENDPOINT and API_KEY say where and with what the provider asks. Each line of the standard input is
an evaluation, answered by a line of what the SDK tells about it.
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
        # A busy computer may answer slowly.
        timeout=60,
    )
)
client = api.get_client()

for line in sys.stdin:
    asked = json.loads(line)
    context = asked.get("context", {})
    details = getattr(client, f"get_{asked['type']}_details")(
        asked["flag"],
        asked["default"],
        EvaluationContext(context.pop("targetingKey", None), context),
    )
    told = {
        "value": details.value,
        "reason": details.reason,
        "variant": details.variant,
        "errorCode": details.error_code,
        "errorMessage": details.error_message,
        "flagMetadata": details.flag_metadata,
    }
    print(json.dumps(told), flush=True)
