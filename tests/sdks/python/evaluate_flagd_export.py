"""Evaluates exports of flags with flagd's official provider for Python, in its own process and from
files. What must come of it stands in tests/tests/flags/.

The standard input is a list of {document, evaluations: [{flag, type, default, context}]}; each
evaluation is answered by a line.
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


def answer(client, flag, type, default, context):
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
    for number, asked in enumerate(json.load(sys.stdin)):
        path = pathlib.Path(folder, f"{number}.json")
        path.write_text(asked["document"])
        # Nothing changes while it is read.
        provider = FlagdProvider(
            resolver_type=ResolverType.FILE,
            offline_flag_source_path=str(path),
            deadline_ms=60_000,
        )
        api.set_provider_and_wait(provider, f"export-{number}")
        client = api.get_client(f"export-{number}")
        for evaluation in asked["evaluations"]:
            print(json.dumps(answer(client, **evaluation)))
        provider.shutdown()
