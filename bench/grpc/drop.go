package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// What the connection that drops holds: dropServices services with dropEach
// instances each.
const (
	dropServices = 10
	dropEach     = 1000
)

// drop has one client ask for a service of one instance while the connection of
// another, which holds 10,000 instances, is cut, and measures what it waits.
func drop(ctx context.Context, o options, t *target) (result, error) {
	clients, err := dialAll(ctx, t, 2)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	reader, holder := clients[0], clients[1]
	if err := reader.do(ctx, t.payload(grpcv2.InstanceType, `{`+service+`,"type":"registerInstance","instance":`+instanceJSON(0)+`}`, registered)); err != nil {
		return nil, err
	}
	for n := range dropServices {
		if err := holder.do(ctx, t.payload(grpcv2.BatchInstance, batchOf(n), registered)); err != nil {
			return nil, err
		}
	}
	ask := t.payload(grpcv2.ServiceQuery, `{`+service+`,"cluster":"","healthyOnly":false,"udpPort":0}`, ofOne)
	before, err := reader.waits(ctx, ask, o.duration)
	if err != nil {
		return nil, err
	}
	_ = holder.conn.Close()
	after, err := reader.waits(ctx, ask, o.duration)
	if err != nil {
		return nil, err
	}
	return result{
		{"longest call before", micros(before[len(before)-1]) / 1000, "ms"},
		{"longest call while it drops", micros(after[len(after)-1]) / 1000, "ms"},
		{"second longest", micros(after[len(after)-2]) / 1000, "ms"},
		{"99.9th of 100 while it drops", micros(after[len(after)*999/1000]) / 1000, "ms"},
	}, nil
}

// waits makes one call after the other and returns what each took, in order of size.
func (c *client) waits(ctx context.Context, m []byte, d time.Duration) (took []time.Duration, err error) {
	for begin := time.Now(); len(took) < 2 || time.Since(begin) < d; {
		sent := time.Now()
		if err := c.do(ctx, m); err != nil {
			return nil, err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return took, nil
}

// batchOf registers the instances of one of the services.
func batchOf(n int) string {
	instances := make([]string, dropEach)
	for i := range instances {
		instances[i] = strings.Replace(instanceJSON(i), `"serviceName":"DEFAULT_GROUP@@orders-service",`, "", 1)
	}
	return fmt.Sprintf(`{"headers":{},"namespace":"public","serviceName":"held-%d","groupName":"DEFAULT_GROUP","module":"naming",`+
		`"type":"batchRegisterInstance","instances":[%s]}`, n, strings.Join(instances, ","))
}
