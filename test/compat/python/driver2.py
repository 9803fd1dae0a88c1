"""Drives nacos-sdk-python 2.x and 3.x for the compatibility tests: reads orders from
standard input and writes what the SDK saw to standard output, one JSON object a
line. Arguments: server host, server port, namespace.
"""

import asyncio
import importlib.metadata
import json
import os
import sys

OUT, sys.stdout = sys.stdout, sys.stderr  # what the SDK prints is not for the test

from v2.nacos import (  # noqa: E402
    BatchRegisterInstanceParam, ClientConfigBuilder, ConfigParam, DeregisterInstanceParam, ListInstanceParam,
    NacosConfigService, NacosNamingService, RegisterInstanceParam, SubscribeServiceParam,
)


def write(obj):
    OUT.write(json.dumps(obj) + "\n")
    OUT.flush()


def shown(hosts):
    return [{
        "ip": h.ip, "port": h.port, "cluster": h.clusterName, "weight": h.weight,
        "enabled": h.enabled, "healthy": h.healthy, "metadata": h.metadata,
    } for h in hosts]


def group(o):
    return {"group_name": o["group"]} if o.get("group") else {}


def wanted(o, instance):
    return RegisterInstanceParam(
        service_name=o["service"], ip=instance["ip"], port=instance["port"], weight=instance["weight"],
        enabled=instance["enabled"], cluster_name=instance.get("cluster", ""),
        metadata=instance.get("metadata") or {}, ephemeral=not instance.get("persistent"), **group(o))


class Driver:
    def __init__(self, host, port, namespace):
        self.settings = (host + ":" + port, namespace)
        self.naming = None
        self.configs = None

    def client_config(self):
        address, namespace = self.settings
        here = os.getcwd()
        return (ClientConfigBuilder().server_address(address).namespace_id(namespace)
                .log_dir(here + "/log").cache_dir(here + "/cache").load_cache_at_start(False).build())

    async def connect(self):
        self.naming = await NacosNamingService.create_naming_service(self.client_config())

    async def register(self, o):
        return self.done(await self.naming.register_instance(wanted(o, o)))

    async def batch(self, o):
        return self.done(await self.naming.batch_register_instances(BatchRegisterInstanceParam(
            service_name=o["service"], instances=[wanted(o, i) for i in o["batch"]], **group(o))))

    async def deregister(self, o):
        return self.done(await self.naming.deregister_instance(DeregisterInstanceParam(
            service_name=o["service"], ip=o["ip"], port=o["port"], cluster_name=o.get("cluster", ""),
            ephemeral=not o.get("persistent"), **group(o))))

    async def update(self, o):
        return self.done(await self.naming.update_instance(wanted(o, o)))

    async def lookup(self, o):
        hosts = await self.naming.list_instances(
            ListInstanceParam(service_name=o["service"], healthy_only=None, **group(o)))
        return {"hosts": shown(hosts)}

    async def subscribe(self, o):
        async def told(hosts):
            write({"service": o["service"], "hosts": shown(hosts)})

        await self.naming.subscribe(
            SubscribeServiceParam(service_name=o["service"], subscribe_callback=told, **group(o)))
        return {}

    async def status(self, _):
        return {"text": "UP" if await self.naming.server_health() else "DOWN"}

    async def config(self, o):
        """Reads, watches and publishes a configuration, and leaves the watch on."""
        async def told(*what):
            print("the listener was told", what)

        self.configs = await NacosConfigService.create_config_service(self.client_config())
        which = {"data_id": o["service"], "group": o["group"]}
        text = "get: " + str(await self.configs.get_config(ConfigParam(**which)))
        await self.configs.add_listener(o["service"], o["group"], told)
        try:
            published = await self.configs.publish_config(ConfigParam(content="a", **which))
        except Exception as e:
            published = repr(e)
        return {"text": f"{text}; publish: {published}"}

    @staticmethod
    def done(ok):
        return {} if ok else {"error": "the SDK answered " + repr(ok)}


async def main():
    driver = Driver(*sys.argv[1:4])
    await driver.connect()
    write({"ready": "nacos-sdk-python " + importlib.metadata.version("nacos-sdk-python")})
    loop = asyncio.get_running_loop()
    while text := await loop.run_in_executor(None, sys.stdin.readline):
        o = json.loads(text)
        try:
            answer = await getattr(driver, o["op"])(o)
        except Exception as e:
            answer = {"error": repr(e)}
        write({"id": o["id"], **answer})


asyncio.run(main())
