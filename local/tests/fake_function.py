#!/usr/bin/env python3
"""A function that is controlled by its event: it dies, waits forever, or echoes the event and can then end."""
import os
import signal
import time
import urllib.request

api = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
while True:
    with urllib.request.urlopen(api + "next") as event:
        invocation, body = event.headers["lambda-runtime-aws-request-id"], event.read()
    if body == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if body == b"wait":
        signal.pause()
    urllib.request.urlopen(api + invocation + "/response", data=body).close()
    if body == b"leave":
        time.sleep(0.5)
        break
