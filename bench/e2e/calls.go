package main

import (
	"bytes"
	"fmt"
	"strconv"
)

// The requests are those of nacos-client 1.4, headers and order of the parameters
// included.
const javaHeaders = " HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nAccept-Charset: UTF-8\r\n" +
	"Accept-Encoding: identity\r\nContent-Encoding: UTF-8\r\nClient-Version: 1.4.8\r\n" +
	"User-Agent: Nacos-Java-Client:v1.4.8\r\nRequestId: 0f7cbbd9-3f5e-4e5e-9a3e-0c1d2b3a4f5e\r\n" +
	"Request-Module: Naming\r\nHost: 127.0.0.1:8848\r\nConnection: Keep-Alive\r\n"

const (
	noBody  = javaHeaders + "\r\n"
	noBytes = javaHeaders + "Content-Length: 0\r\n\r\n"
)

// population are the instances that requests are about: so many services of each
// so many instances.
type population struct {
	prefix string // of the service names
	// services is 0 for a population that grows: each instances are of one service,
	// the next of another. Otherwise requests go through all instances over and
	// over, those of one service far apart.
	services, each int
	// distinct: no two instances have equal metadata.
	distinct   bool
	persistent bool
}

// instance is instance n.
type instance struct {
	service, host, n int
}

func (p *population) instance(n int) instance {
	if p.services == 0 {
		return instance{service: n / p.each, host: n % p.each, n: n}
	}
	return instance{service: p.scatter(n), host: n / p.services % p.each, n: n % p.size()}
}

// size is how many instances there are.
func (p *population) size() int { return p.services * p.each }

// scatter goes through the services in an order that is not that of their names.
func (p *population) scatter(n int) int {
	const prime = 7919 // not a factor of any number of services here
	return n * prime % p.services
}

// appendService appends the escaped name of a service.
func (p *population) appendService(b []byte, service int) []byte {
	b = append(b, "DEFAULT_GROUP%40%40"...)
	b = append(b, p.prefix...)
	return appendPadded(b, service)
}

// appendPadded appends a number with at least seven digits, so that all requests
// of a kind are of one length.
func appendPadded(b []byte, n int) []byte {
	for limit := 1_000_000; limit > n && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// appendIP appends an address of the service: one of the loopback network, whose
// persistent instances may be probed.
func appendIP(b []byte, i instance) []byte {
	b = append(b, "127."...)
	b = strconv.AppendInt(b, int64(i.service>>8&0xff), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(i.service&0xff), 10)
	b = append(b, '.')
	return strconv.AppendInt(b, int64(1+i.host%250), 10)
}

// appendPort appends the port, which nothing listens on.
func appendPort(b []byte, i instance) []byte { return strconv.AppendInt(b, int64(1+i.host/250), 10) }

// appendMetadata appends three escaped entries.
func (p *population) appendMetadata(b []byte, i instance) []byte {
	b = append(b, `%7B%22preserved.register.source%22%3A%22SPRING_CLOUD%22%2C%22version%22%3A%221.4.`...)
	if p.distinct {
		b = appendPadded(b, i.n)
	} else {
		b = appendPadded(b, i.service%7)
	}
	return append(b, `%22%2C%22zone%22%3A%22eu-west-1a%22%7D`...)
}

func (p *population) register() *call {
	return &call{"register", func(b []byte, n int) []byte {
		i := p.instance(n)
		b = append(b, "POST /nacos/v1/ns/instance?app=unknown&metadata="...)
		b = p.appendMetadata(b, i)
		b = append(b, "&ip="...)
		b = appendIP(b, i)
		b = append(b, "&weight=1.0&ephemeral="...)
		b = strconv.AppendBool(b, !p.persistent)
		b = append(b, "&serviceName="...)
		b = p.appendService(b, i.service)
		b = append(b, "&groupName=DEFAULT_GROUP&enable=true&healthy=true&namespaceId=public&clusterName=DEFAULT&port="...)
		b = appendPort(b, i)
		return append(b, noBytes...)
	}, isOK}
}

func (p *population) deregister() *call {
	return &call{"deregister", func(b []byte, n int) []byte {
		i := p.instance(n)
		b = append(b, "DELETE /nacos/v1/ns/instance?ip="...)
		b = appendIP(b, i)
		b = append(b, "&ephemeral=true&serviceName="...)
		b = p.appendService(b, i.service)
		b = append(b, "&namespaceId=public&clusterName=DEFAULT&port="...)
		b = appendPort(b, i)
		return append(b, noBytes...)
	}, isOK}
}

// beat is a beat, with a body or, as the server asks for after the first, without.
func (p *population) beat(full bool) *call {
	name := "light beat"
	if full {
		name = "full beat"
	}
	return &call{name, func(b []byte, n int) []byte {
		i := p.instance(n)
		b = append(b, "PUT /nacos/v1/ns/instance/beat?app=unknown&serviceName="...)
		b = p.appendService(b, i.service)
		b = append(b, "&namespaceId=public&port="...)
		b = appendPort(b, i)
		b = append(b, "&clusterName=DEFAULT&ip="...)
		b = appendIP(b, i)
		if full {
			b = append(b, "&beat=%7B%22cluster%22%3A%22DEFAULT%22%2C%22ip%22%3A%22"...)
			b = appendIP(b, i)
			b = append(b, "%22%2C%22metadata%22%3A"...)
			b = p.appendMetadata(b, i)
			b = append(b, "%2C%22period%22%3A5000%2C%22port%22%3A"...)
			b = appendPort(b, i)
			b = append(b, "%2C%22scheduled%22%3Afalse%2C%22serviceName%22%3A%22"...)
			b = p.appendService(b, i.service)
			b = append(b, "%22%2C%22stopped%22%3Afalse%2C%22weight%22%3A1.0%7D"...)
		}
		return append(b, noBytes...)
	}, isBeatAnswer}
}

// list asks for one service after the other, and expects its instances. It is for
// a population that does not grow.
func (p *population) list() *call {
	return &call{"list of " + strconv.Itoa(p.each), func(b []byte, n int) []byte {
		b = append(b, "GET /nacos/v1/ns/instance/list?app=unknown&healthyOnly=false&namespaceId=public&clientIP=127.0.0.1&serviceName="...)
		b = p.appendService(b, p.scatter(n))
		b = append(b, "&udpPort=0&encoding=UTF-8"...)
		return append(b, noBody...)
	}, p.isList}
}

func isOK(body []byte) bool { return string(body) == "ok" }

func isBeatAnswer(body []byte) bool { return bytes.Contains(body, []byte(`"code":10200`)) }

// isList checks the whole list of a small service; of a large one the first and
// last instance, as counting would make the load slower than the server.
func (p *population) isList(body []byte) bool {
	if !bytes.HasPrefix(body, []byte(`{"hosts":[{"ip":"127.`)) || !bytes.HasSuffix(body, []byte(`"metadata":{}}`)) {
		return false
	}
	const instance = `"instanceId":`
	if p.each > 10 {
		return len(body) > p.each*len(instance)
	}
	return bytes.Count(body, []byte(instance)) == p.each
}

// same is c for a server that answers everything with the same body.
func (c *call) same(body []byte) *call {
	return &call{c.name, c.build, func(b []byte) bool { return len(b) == len(body) }}
}

// get is a GET of a fixed target.
func get(target string) *call {
	request := fmt.Sprintf("GET %s%s", target, noBody)
	return &call{target, func(b []byte, _ int) []byte { return append(b, request...) }, func([]byte) bool { return true }}
}
