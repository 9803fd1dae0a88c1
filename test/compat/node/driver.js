// Drives nacos-naming 1.x and nacos 2.x for the compatibility tests: reads orders from
// standard input and writes what the SDK saw to standard output, one JSON object a
// line. Arguments: where npm installed the SDK, server host, server port, namespace.
'use strict';

const path = require('path');
const readline = require('readline');

const [ prefix, host, port, namespace ] = process.argv.slice(2);
const sdk = path.join(prefix, 'node_modules', 'nacos-naming');
const version = require(path.join(sdk, 'package.json')).version;
const { NacosNamingClient } = require(sdk);

const print = object => process.stdout.write(JSON.stringify(object) + '\n');
const talk = (...args) => console.error(...args);
const logger = { debug() {}, info: talk, log: talk, warn: talk, error: talk };

const shown = h => ({
  ip: h.ip,
  port: Number(h.port),
  cluster: h.clusterName,
  weight: h.weight,
  enabled: h.enabled,
  healthy: h.valid === undefined ? h.healthy : h.valid,
  metadata: h.metadata,
});

const wanted = o => ({
  ip: o.ip,
  port: o.port,
  clusterName: o.cluster || 'DEFAULT',
  weight: o.weight,
  enabled: o.enabled,
  healthy: true,
  ephemeral: true,
  metadata: o.metadata,
});

// Reads, watches and publishes a configuration, and leaves the watch on.
async function config(dataId, group) {
  const { NacosConfigClient } = require(path.join(prefix, 'node_modules', 'nacos'));
  const client = new NacosConfigClient({ serverAddr: `${host}:${port}`, namespace });
  client.on('error', talk);
  const failed = err => String(err);
  const got = await client.getConfig(dataId, group).catch(failed);
  client.subscribe({ dataId, group }, content => talk('the listener was told', content));
  const published = await client.publishSingle(dataId, group, 'a').catch(failed);
  return `get: ${got}; publish: ${published}`;
}

// 1.x knows neither groups nor namespaces.
const orders1 = {
  register: (c, o) => c.registerInstance(o.service, wanted(o)),
  deregister: (c, o) => c.deregisterInstance(o.service, o.ip, o.port, o.cluster || undefined),
  lookup: (c, o) => c.getAllInstances(o.service),
  subscribe: (c, o, told) => c.subscribe({ serviceName: o.service }, told),
  status: c => c.getServerStatus(),
};

const orders2 = {
  register: (c, o) => c.registerInstance(o.service, wanted(o), o.group || undefined),
  deregister: (c, o) => c.deregisterInstance(o.service, wanted(o), o.group || undefined),
  lookup: (c, o) => c.getAllInstances(o.service, o.group || undefined, '', false),
  subscribe: (c, o, told) => c.subscribe({ serviceName: o.service, groupName: o.group || undefined }, told),
  status: c => c.getServerStatus(),
  config: (c, o) => config(o.service, o.group),
};

async function main() {
  const client = new NacosNamingClient({ logger, serverList: `${host}:${port}`, namespace: namespace || undefined });
  client.on('error', talk);
  client._hostReactor.on('error', talk);
  client._beatReactor.on('error', talk);
  await client.ready();
  print({ ready: `nacos-naming ${version}` });

  const orders = version.startsWith('1.') ? orders1 : orders2;
  for await (const text of readline.createInterface({ input: process.stdin })) {
    const o = JSON.parse(text);
    const told = hosts => print({ service: o.service, hosts: hosts.map(shown) });
    try {
      const result = await orders[o.op](client, o, told);
      print({
        id: o.id,
        hosts: o.op === 'lookup' ? result.map(shown) : [],
        text: o.op === 'status' || o.op === 'config' ? result : '',
      });
    } catch (err) {
      print({ id: o.id, error: String(err) });
    }
  }
  process.exit(0);
}

main().catch(err => {
  talk(err);
  process.exit(1);
});
