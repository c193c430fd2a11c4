"""Evaluates flag exports with flagd's official in-process provider for Python, from files.
The expected results are in tests/tests/flags/.

Standard input is a list of {document, evaluations: [{flag, type, default, context}]}.
Prints a line per evaluation.
"""

import json
import logging
import pathlib
import sys
import tempfile

from openfeature import api
from openfeature.contrib.provider.flagd import FlagdProvider
from openfeature.contrib.provider.flagd.config import ResolverType
from openfeature.evaluation_context import EvaluationContext

logging.disable(logging.CRITICAL)


def evaluate(client, flag, type, default, context):
    attributes = dict(context)
    context = EvaluationContext(attributes.pop("targetingKey", None), attributes)
    kind = {"number": "float" if isinstance(default, float) else "integer"}.get(type, type)
    details = getattr(client, f"get_{kind}_details")(flag, default, context)
    return {
        "value": details.value,
        "variant": details.variant,
        "reason": details.reason,
        "errorCode": details.error_code,
    }


with tempfile.TemporaryDirectory() as folder:
    for number, export in enumerate(json.load(sys.stdin)):
        path = pathlib.Path(folder, f"{number}.json")
        path.write_text(export["document"])
        # The file does not change.
        provider = FlagdProvider(
            resolver_type=ResolverType.FILE,
            offline_flag_source_path=str(path),
            deadline_ms=60_000,
        )
        api.set_provider_and_wait(provider, f"export-{number}")
        client = api.get_client(f"export-{number}")
        for evaluation in export["evaluations"]:
            print(json.dumps(evaluate(client, **evaluation)))
        provider.shutdown()
