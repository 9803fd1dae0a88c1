"""Drives nacos-sdk-python 0.1.x and 1.0 for the compatibility tests: reads orders
from standard input and writes what the SDK saw to standard output, one JSON object
a line. Arguments: server host, server port, namespace.
"""

import importlib.metadata
import inspect
import json
import sys
import threading

OUT, sys.stdout = sys.stdout, sys.stderr  # what the SDK prints is not for the test

import nacos  # noqa: E402
from nacos.listener import SubscribeListener  # noqa: E402

BEAT_SECONDS = 5
POLL_SECONDS = 2

lock = threading.Lock()


def write(obj):
    with lock:
        OUT.write(json.dumps(obj) + "\n")
        OUT.flush()


def shown(h):
    return {
        "ip": h["ip"], "port": h["port"], "cluster": h["clusterName"], "weight": h["weight"],
        "enabled": h["enabled"], "healthy": h["healthy"], "metadata": h["metadata"],
    }


class Driver:
    def __init__(self, host, port, namespace):
        self.client = nacos.NacosClient(host + ":" + port, namespace=namespace, logDir="log")
        parameters = inspect.signature(self.client.add_naming_instance).parameters
        self.beats_itself = "heartbeat_interval" in parameters
        self.beats = {}  # stop events of our own beats, by address

    def group(self, o):
        return {"group_name": o["group"]} if o.get("group") else {}

    def register(self, o):
        args = dict(cluster_name=o.get("cluster"), weight=o["weight"], metadata=o.get("metadata"), **self.group(o))
        extra = {"heartbeat_interval": BEAT_SECONDS} if self.beats_itself else {}
        ok = self.client.add_naming_instance(o["service"], o["ip"], o["port"], enable=o["enabled"], **extra, **args)
        if not self.beats_itself:
            self.beat(o, args)
        return self.done(ok)

    def beat(self, o, args):
        """Beats as the README of 0.1.x tells its users to: from a thread of their own."""
        stop = self.beats[(o["ip"], o["port"])] = threading.Event()

        def loop():
            while not stop.wait(BEAT_SECONDS):
                try:
                    self.client.send_heartbeat(o["service"], o["ip"], o["port"], **args)
                except Exception as e:
                    print("beat:", e)

        threading.Thread(target=loop, daemon=True).start()

    def deregister(self, o):
        if stop := self.beats.pop((o["ip"], o["port"]), None):
            stop.set()
        ok = self.client.remove_naming_instance(
            o["service"], o["ip"], o["port"], cluster_name=o.get("cluster"), **self.group(o))
        return self.done(ok)

    def update(self, o):
        ok = self.client.modify_naming_instance(
            o["service"], o["ip"], o["port"], cluster_name=o.get("cluster"), weight=o["weight"],
            metadata=o.get("metadata"), enable=o["enabled"], **self.group(o))
        return self.done(ok)

    def lookup(self, o):
        answer = self.client.list_naming_instance(o["service"], **self.group(o))
        return {"hosts": [shown(h) for h in answer["hosts"]]}

    def subscribe(self, o):
        def told(event, instance):
            write({"service": o["service"], **self.lookup(o)})

        listener = SubscribeListener(fn=told, listener_name=o["service"])
        self.client.subscribe(listener, POLL_SECONDS, o["service"], **self.group(o))
        return {}

    def status(self, _):
        self.client.list_naming_instance("any")
        return {"text": "UP"}

    def config(self, o):
        """Reads, watches and publishes a configuration, and leaves the watch on."""
        which = (o["service"], o["group"])
        text = "get: " + str(self.client.get_config(*which))
        self.client.add_config_watcher(*which, lambda told: print("the listener was told", told))
        try:
            published = self.client.publish_config(*which, "a")
        except Exception as e:
            published = repr(e)
        return {"text": f"{text}; publish: {published}"}

    @staticmethod
    def done(ok):
        return {} if ok else {"error": "the SDK answered " + repr(ok)}


def main():
    driver = Driver(*sys.argv[1:4])
    write({"ready": "nacos-sdk-python " + importlib.metadata.version("nacos-sdk-python")})
    for text in sys.stdin:
        o = json.loads(text)
        try:
            answer = getattr(driver, o["op"])(o)
        except Exception as e:
            answer = {"error": repr(e)}
        write({"id": o["id"], **answer})


main()
